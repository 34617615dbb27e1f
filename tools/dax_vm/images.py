"""Files on the host that are the guest's memory: media of persistent memory, and witnesses."""

import os
import subprocess

from dax_vm.common import program

MIB = 1 << 20
MEDIUM_BYTES = 160 * MIB
# Where the data of a namespace with page structures in ordinary memory begins.
NAMESPACE_OFFSET = 2 * MIB


def create(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def copy(source, target, offset=0):
    """A copy of what begins at `offset`, sparse where the original is, so that it costs what was
    written."""
    create(target, os.path.getsize(source) - offset)
    overwrite(source, target, offset)


def overwrite(source, target, offset=0):
    """Copies what `source` has from `offset` on into a file that has at most holes and zeros where
    `source` has a hole."""
    size = os.path.getsize(source)
    with open(source, "rb") as reader, open(target, "r+b") as writer:
        end = offset
        while end < size:
            try:
                begin = os.lseek(reader.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                return
            end = os.lseek(reader.fileno(), begin, os.SEEK_HOLE)
            copy_range(reader.fileno(), begin, writer.fileno(), begin - offset, end - begin)


def copy_range(reader, source, writer, target, count):
    """`count` bytes from `source` on to where `target` is, of open files."""
    while count > 0:
        data = os.pread(reader, min(4 * MIB, count), source)
        if not data:
            raise OSError(f"file ends at {source}, expected {count} bytes more")
        os.pwrite(writer, data, target)
        source += len(data)
        target += len(data)
        count -= len(data)


def make_file_system(path, offset):
    """ext4 from `offset` on, with blocks of a page, as DAX wants it."""
    kib = (os.path.getsize(path) - offset) // 1024
    subprocess.run([program("mkfs.ext4"), "-q", "-b", "4096", "-E", f"offset={offset},nodiscard",
                    path, f"{kib}k"], check=True)


def space_free(directory):
    info = os.statvfs(directory)
    return info.f_bavail * info.f_frsize
