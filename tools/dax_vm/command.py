"""What the commands tools/dax-vm and tools/disk-vm share: options, places, progress, their end."""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from dax_vm import images
from dax_vm.common import CannotRun, CheckFailed
from dax_vm.machine import Hardware, Machine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CACHE = os.path.join(ROOT, ".cache", "dax-vm")
EXIT_OK, EXIT_CHECK_FAILED, EXIT_COULD_NOT_RUN, EXIT_SKIPPED = 0, 1, 2, 77
SPACE_BYTES = 2 << 30


class ProgressBar:
    """On a terminal only."""

    def __init__(self):
        self.total = 0
        self._done = 0
        self._what = ""
        self._shown = sys.stderr.isatty()

    def begin(self, what):
        self._what = what
        self.advance(0)

    def advance(self, count):
        self._done += count
        if self._shown:
            filled = 30 * self._done // max(1, self.total)
            print(f"\r{self._what:32} [{'#' * filled}{'.' * (30 - filled)}] "
                  f"{self._done} of {self.total} ", end="", file=sys.stderr, flush=True)

    def clear(self):
        if self._shown:
            print("\r" + " " * 90 + "\r", end="", file=sys.stderr, flush=True)


class System:
    """Kernel and initial file system of the guest."""

    def __init__(self, kernel, initramfs):
        self.kernel = kernel
        self.initramfs = initramfs


def count(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def add_common_options(parser):
    """Those that mean the same to both commands."""
    parser.add_argument("--subscribers", type=positive, default=500, help="subscribers [500]")
    parser.add_argument("--seed", type=count, default=1, help="seed of all random numbers [1]")
    parser.add_argument("--accelerator", choices=("tcg", "kvm"),
                        help="KVM where it works, else TCG")
    parser.add_argument("--build", metavar="DIR",
                        help="programs to test; otherwise the release build, brought up to date")
    parser.add_argument("--skip-if-impossible", action="store_true",
                        help=f"exit with {EXIT_SKIPPED} when something needed is missing")
    parser.add_argument("--keep", metavar="DIR",
                        help="leave an image that fails its audit, and its witness, in there")
    parser.add_argument("--json", metavar="FILE", help="write the results to this file")


def prepare_build(directory, targets):
    """Sets up and builds, unless told where the programs are."""
    if directory:
        return os.path.abspath(directory)
    subprocess.run([os.path.join(ROOT, "tools", "setup"), "--tests"], check=True)
    subprocess.run([os.path.join(ROOT, "tools", "build"), "release", *targets], check=True)
    return os.path.join(ROOT, "build", "release")


def expect_built(programs):
    for path in programs:
        if not os.access(path, os.X_OK):
            raise CannotRun(f"{path} is not built")


def choose_directory(name):
    """Memory of the guests should not be written to a disk."""
    for parent in ("/dev/shm", tempfile.gettempdir()):
        if os.access(parent, os.W_OK) and images.space_free(parent) >= SPACE_BYTES:
            return tempfile.mkdtemp(prefix=f"flugs-{name}-", dir=parent)
    raise CannotRun(f"{SPACE_BYTES >> 20} MiB are needed on /dev/shm or in the temporary directory")


def choose_accelerator(system, wanted):
    """KVM when the host's processor has all flush instructions and a guest comes up with it."""
    if wanted:
        return wanted
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        flags = info.read().split()
    if "clwb" not in flags or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    # There are machines on which it opens and then does nothing: that is found out once.
    verdict = os.path.join(CACHE, f"accelerator-{os.uname().release}")
    if not os.path.exists(verdict):
        with open(verdict, "w", encoding="ascii") as file:
            file.write(probe_kvm(system))
    with open(verdict, encoding="ascii") as file:
        return file.read()


def probe_kvm(system):
    try:
        with Machine(system, Hardware("kvm", "max", "nvdimm"), "nothing", []) as machine:
            machine.wait_for("booted", timeout_s=15)
            machine.wait_until_off()
    except CheckFailed:
        return "tcg"
    return "kvm"


def cpu_seconds():
    """Of this process and of all that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def write_json(path, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
        file.write("\n")


def run_command(name, run, options):
    """The exit status of `run(options, directory)`, whose directory goes when it ends."""
    # As an exception, so that machines are ended and images removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_COULD_NOT_RUN))
    directory = None
    try:
        directory = choose_directory(name)
        return run(options, directory)
    except (CannotRun, OSError, subprocess.CalledProcessError) as error:
        if options.skip_if_impossible and isinstance(error, CannotRun):
            print(f"skipped: {error}")
            return EXIT_SKIPPED
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    except KeyboardInterrupt:
        return EXIT_COULD_NOT_RUN
    finally:
        if directory:
            shutil.rmtree(directory, ignore_errors=True)
