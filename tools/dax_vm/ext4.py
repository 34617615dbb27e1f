"""ext4 on an image, read without mounting it: its journal, its consistency, one file of it."""

import os
import re
import subprocess

from dax_vm import images
from dax_vm.common import CheckFailed, program

BLOCK_BYTES = 4096  # as images.make_file_system makes them
SLOWEST_TOOL_S = 120

# Level and depth, number in its node, logical blocks, physical blocks, length, flags.
EXTENT = re.compile(r" *\d+/ *\d+ +\d+/ *\d+ +(\d+) - +\d+ +(\d+) - +\d+ +(\d+) *(Uninit)? *")


class Extent:
    """Blocks of a file that lie one behind another on the medium."""

    def __init__(self, logical, physical, count):
        self.logical = logical
        self.physical = physical
        self.count = count


def replay_journal(path):
    """What a mount does first, and nothing of what a check would repair."""
    _check(path, "-p", "-E", "journal_only")


def expect_consistent(path):
    """CheckFailed unless all that is amiss is what a mount sets right as well: summaries that are
    behind, files that were being removed."""
    _check(path, "-f", "-p")


def _check(path, *arguments):
    done = subprocess.run([program("e2fsck"), *arguments, path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SLOWEST_TOOL_S, check=False)
    if done.returncode not in (0, 1):  # 1: something was set right
        raise CheckFailed(f"e2fsck {' '.join(arguments)} ended with {done.returncode}: "
                          f"{done.stdout}{done.stderr}")


def extract(path, name, target):
    """Copies a file out of an image whose journal has been replayed, with its holes. False: there
    is no such file."""
    text = _debugfs(path, f"stat {name}")
    if "File not found" in text:
        return False
    size = re.search(r"Type: regular .*?\bSize: (\d+)$", text, re.MULTILINE | re.DOTALL)
    if not size:
        raise CheckFailed(f"debugfs describes {name} as: {text}")
    size = int(size[1])
    with open(path, "rb") as reader, open(target, "wb", opener=_private) as writer:
        writer.truncate(size)
        for extent in _extents(path, name):
            begin = extent.logical * BLOCK_BYTES
            count = min(extent.count * BLOCK_BYTES, size - begin)
            images.copy_range(reader.fileno(), extent.physical * BLOCK_BYTES, writer.fileno(),
                              begin, count)
    return True


def _private(path, flags):
    return os.open(path, flags, 0o600)


def _extents(path, name):
    """Those that have been written: others read as zeros, as a hole does."""
    text = _debugfs(path, f"dump_extents -l {name}")
    lines = [line for line in text.splitlines() if not line.startswith("debugfs ")]
    if not lines or not lines[0].startswith("Level Entries"):
        raise CheckFailed(f"debugfs describes the extents of {name} as: {text}")
    for line in lines[1:]:
        match = EXTENT.fullmatch(line)
        if not match:
            raise CheckFailed(f"debugfs describes an extent of {name} as: {line}")
        logical, physical, count, unwritten = match.groups()
        if not unwritten:
            yield Extent(int(logical), int(physical), int(count))


def _debugfs(path, command):
    """What it says, its errors included: its exit status is 0 even when a file is not there."""
    done = subprocess.run([program("debugfs"), "-R", command, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SLOWEST_TOOL_S, check=False)
    if done.returncode != 0:
        raise CheckFailed(f"debugfs -R \"{command}\" ended with {done.returncode}: {done.stdout}")
    return done.stdout
