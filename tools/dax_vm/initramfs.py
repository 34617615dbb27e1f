"""The guest's kernel and its initial file system: busybox, kernel modules, programs under test."""

import glob
import os
import re
import shutil
import subprocess
import tempfile

from dax_vm.common import CannotRun, program

HERE = os.path.dirname(os.path.abspath(__file__))


class Guest:
    """What a guest does: the file with its jobs, and drivers, those last that a job loads itself.
    Where a driver is built in, modprobe says so."""

    def __init__(self, jobs, drivers, late_drivers=()):
        self.jobs = jobs
        self.drivers = drivers
        self.late_drivers = late_drivers


# What brings up NVDIMMs and virtio-pmem.
DAX_GUEST = Guest(os.path.join(HERE, "guest_jobs"),
                  ("libnvdimm", "nfit", "nd_pmem", "nd_e820", "virtio_pci", "virtio_pmem",
                   "dax_pmem", "crc32c_generic", "ext4"))


class Kernel:
    """A kernel package, unpacked and never installed."""

    def __init__(self, cache):
        self._root = os.path.join(cache, "kernel")
        package = self._newest_package(cache)
        if not self._is_unpacked(package):
            self._unpack(package)
        self.image = self._only(os.path.join(self._root, "boot", "vmlinuz-*"))
        self.version = os.path.basename(self.image)[len("vmlinuz-"):]

    @staticmethod
    def _newest_package(cache):
        packages = glob.glob(os.path.join(cache, "linux-image-*.deb"))
        if not packages:
            raise CannotRun(f"no kernel package in {cache}: tools/setup --machines fetches one")
        return max(packages, key=os.path.getmtime)

    def _is_unpacked(self, package):
        try:
            with open(os.path.join(self._root, "package"), encoding="ascii") as stamp:
                return stamp.read() == os.path.basename(package)
        except FileNotFoundError:
            return False

    def _unpack(self, package):
        fresh = f"{self._root}.{os.getpid()}"
        subprocess.run([program("dpkg"), "-x", package, fresh], check=True)
        version = os.path.basename(self._only(os.path.join(fresh, "lib", "modules", "*")))
        subprocess.run([program("depmod"), "-b", fresh, version], check=True)
        with open(os.path.join(fresh, "package"), "w", encoding="ascii") as stamp:
            stamp.write(os.path.basename(package))
        shutil.rmtree(self._root, ignore_errors=True)
        os.rename(fresh, self._root)

    @staticmethod
    def _only(pattern):
        found = glob.glob(pattern)
        if len(found) != 1:
            raise CannotRun(f"expected one {pattern}, found {len(found)}")
        return found[0]

    def module_files(self, drivers):
        """Paths of the drivers' modules, each behind those it needs."""
        files = []
        for driver in drivers:
            # Of ndctl's files one hides libnvdimm from modprobe: hence no configuration at all.
            done = subprocess.run(
                [program("modprobe"), "-C", "/dev/null", "-d", self._root, "-S", self.version,
                 "--show-depends", driver], check=True, capture_output=True, text=True)
            for path in re.findall(r"^insmod (\S+)", done.stdout, re.MULTILINE):
                if path not in files:
                    files.append(path)
        return files


class Archive:
    """A cpio archive in the format that the kernel unpacks ("newc")."""

    DIRECTORY = 0o040755
    FILE = 0o100755

    def __init__(self):
        self._parts = []
        self._names = set()

    def add(self, name, mode, data=b""):
        parent = os.path.dirname(name)
        if parent and parent not in self._names:
            self.add(parent, self.DIRECTORY)
        self._names.add(name)
        self._append(name, mode, data)

    def add_file(self, name, path):
        if name in self._names:
            return
        with open(path, "rb") as file:
            self.add(name, self.FILE, file.read())

    def write(self, path):
        self._append("TRAILER!!!", 0, b"")
        with open(path, "wb") as file:
            file.write(b"".join(self._parts))

    def _append(self, name, mode, data):
        encoded = name.encode() + b"\0"
        # Inode, mode, owner, group, links, time, size, four device numbers, length of the name, 0.
        fields = (len(self._parts), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + "".join(f"{field:08x}" for field in fields).encode()
        self._parts.append(self._padded(header + encoded) + self._padded(data))

    @staticmethod
    def _padded(data):
        return data + b"\0" * (-len(data) % 4)


def shared_libraries(path):
    """Paths of everything the program is linked with, the loader included."""
    done = subprocess.run([program("ldd"), path], check=True, capture_output=True, text=True)
    if "not found" in done.stdout:
        raise CannotRun(f"{path}: libraries are missing:\n{done.stdout}")
    return re.findall(r"(/\S+) \(0x", done.stdout)


def loaded_library(name):
    """Path of a library that programs load themselves."""
    listed = subprocess.run([program("ldconfig"), "-p"], check=True, capture_output=True, text=True)
    line = rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (\S+)$"
    found = re.search(line, listed.stdout, re.MULTILINE)
    if not found:
        raise CannotRun(f"{name} is missing")
    return found.group(1)


def stripped(path):
    """Its bytes without what only a debugger reads, most of them."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([program("strip"), "-o", file.name, path], check=True)
        return file.read()


def build_initramfs(path, kernel, guest, programs, test_commands=()):
    """Writes the initial file system with the programs in /bin and the list of tests to run."""
    archive = Archive()
    archive.add_file("init", os.path.join(HERE, "guest_init"))
    archive.add_file("jobs", guest.jobs)
    archive.add_file("bin/busybox", program("busybox"))
    early = kernel.module_files(guest.drivers)
    late = [m for m in kernel.module_files(guest.late_drivers) if m not in early]
    for name, modules in (("order", early), ("late", late)):
        for module in modules:
            archive.add_file("modules/" + os.path.basename(module), module)
        archive.add("modules/" + name, Archive.FILE,
                    "".join(os.path.basename(m) + "\n" for m in modules).encode())
    for tested in programs:
        archive.add("bin/" + os.path.basename(tested), Archive.FILE, stripped(tested))
        for library in shared_libraries(tested):
            archive.add_file(_place_of(library), library)
    made_with = loaded_library("libpmemobj.so.1")
    for library in [made_with, *shared_libraries(made_with)]:
        archive.add_file(_place_of(library), library)
    archive.add("tests", Archive.FILE, "".join(f"{c}\n" for c in test_commands).encode())
    archive.write(path)


def _place_of(library):
    # The loader is found by its full path, all others in LD_LIBRARY_PATH.
    name = os.path.basename(library)
    return "lib64/" + name if name.startswith("ld-linux") else "lib/" + name
