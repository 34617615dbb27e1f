"""One virtual machine: starts it, hears what it says, stops and kills it."""

import ctypes
import os
import queue
import signal
import subprocess
import threading
import time

from dax_vm import images
from dax_vm.common import CheckFailed, program
from dax_vm.monitor import Monitor

QEMU = "qemu-system-x86_64"
GUEST_MEMORY = "384M"
FIRST_WITNESS_SLOT = 0x10  # on the PCI bus; guest_init knows it too
FIRST_MEDIUM_SLOT = 0x08
MEDIA_MAX = 8
SLOWEST_ANSWER_S = 120
MACHINES = {"nvdimm": "q35,nvdimm=on",
            "nvdimm-eadr": "q35,nvdimm=on,nvdimm-persistence=cpu",  # caches survive a power cut
            "virtio-pmem": "q35", "disk": "q35"}
PR_SET_PDEATHSIG = 1  # of Linux's <sys/prctl.h>


def die_with_parent():
    """So that no machine, a stopped one least of all, outlives a tool that was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Hardware:
    """What the machine is made of: processor, accelerator, and how the media are attached."""

    def __init__(self, accelerator, processor, device, processors=2, sector_bytes=512):
        self.accelerator = accelerator
        self.processor = processor
        self.device = device  # a key of MACHINES; the media of "disk" are NBD sockets
        self.sector_bytes = sector_bytes  # of a disk
        self.processors = processors  # what only audits needs one: it boots with less work

    def arguments(self, media, witnesses):
        accelerator = "tcg,thread=multi" if self.accelerator == "tcg" else "kvm"
        arguments = [
            "-accel", accelerator, "-cpu", self.processor, "-smp", str(self.processors),
            "-machine", MACHINES[self.device],
            "-m", f"{GUEST_MEMORY},slots={MEDIA_MAX},maxmem=8G", "-nodefaults",
            "-no-user-config", "-display", "none", "-serial", "stdio", "-monitor", "none",
            "-no-reboot"]
        for number, path in enumerate(media):
            arguments += self._medium(number, path)
        for number, path in enumerate(witnesses):
            arguments += self._memory(f"witness{number}", path)
            arguments += ["-device", f"ivshmem-plain,memdev=witness{number},"
                                     f"addr={FIRST_WITNESS_SLOT + number:#x},master=on"]
        return arguments

    def _medium(self, number, path):
        if self.device == "disk":
            return self._disk(number, path)
        device = f"nvdimm,memdev=medium{number}"  # of both machines that have such
        if self.device == "virtio-pmem":
            device = f"virtio-pmem-pci,memdev=medium{number},addr={FIRST_MEDIUM_SLOT + number:#x}"
        return self._memory(f"medium{number}", path) + ["-device", device]

    def _disk(self, number, path):
        """The guest sees a volatile cache, and flushes it."""
        return ["-blockdev", f"driver=nbd,node-name=disk{number},server.type=unix,"
                             f"server.path={path}",
                "-device", f"virtio-blk-pci,drive=disk{number},write-cache=on,discard=off,"
                           f"write-zeroes=off,logical_block_size={self.sector_bytes},"
                           f"physical_block_size={self.sector_bytes}"]

    @staticmethod
    def _memory(name, path):
        # Without share=on everything looks right and nothing is kept.
        return ["-object", f"memory-backend-file,id={name},share=on,"
                           f"mem-path={path},size={os.path.getsize(path)}"]


class Machine:
    """A running guest that does one job of guest_init.

    With `state`, a file that another machine of the same hardware has saved, the guest goes on from
    there instead of booting. Media and witnesses keep what they hold.
    """

    def __init__(self, system, hardware, job, media, witnesses=(), arguments=(), state=None):
        # On a busy host the guest may get no time for seconds: its kernel must not take that for
        # a timer that does not work, or for a processor that hangs.
        command_line = ("console=ttyS0 panic=-1 quiet loglevel=3 nowatchdog mitigations=off "
                        "no_timer_check rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on "
                        f"flugs.job={job} flugs.args={','.join(arguments)}")
        self._answers = queue.Queue()
        self._said = []  # everything, for whoever has to find out what went wrong
        self._monitor = Monitor()
        self._process = subprocess.Popen(
            [program(QEMU), *hardware.arguments(media, witnesses), *self._monitor.arguments,
             *(("-S", "-incoming", "defer") if state else ()), "-kernel", system.kernel,
             "-initrd", system.initramfs, "-append", command_line],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent, pass_fds=self._monitor.pass_fds)
        self._monitor.began()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        if state:
            self._load(state, witnesses)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _load(self, state, witnesses):
        """Loading a state overwrites the witnesses; then they get back what they held before."""
        try:
            for path in witnesses:
                images.copy(path, path + ".now")
            self._monitor.load(state)
            for path in witnesses:
                images.overwrite(path + ".now", path)
                os.unlink(path + ".now")
            self._monitor.go()
        except CheckFailed as failure:
            self.kill()
            raise CheckFailed(f"{failure}; {self.last_words()}") from None

    def _listen(self):
        for raw in self._process.stdout:
            line = raw.decode(errors="replace").strip()
            self._said.append(line)
            at = line.find("@@ ")
            if at >= 0:
                word, _, value = line[at + 3:].partition(" ")
                self._answers.put((word, value))
        self._answers.put(("gone", ""))

    def wait_for(self, wanted, timeout_s=SLOWEST_ANSWER_S):
        """The value of the next answer with that word. CheckFailed when it does not come."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                word, value = self._answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise self._failed(f"did not say \"{wanted}\" within {timeout_s} s") from None
            if word == wanted:
                return value
            if word in ("failed", "ended", "gone"):
                raise self._failed(f"said \"{word} {value}\", expected \"{wanted}\"")

    def expect_running(self):
        """CheckFailed when the guest has said that its work has ended, or is gone."""
        try:
            word, value = self._answers.get_nowait()
        except queue.Empty:
            return
        if word in ("failed", "ended", "gone"):
            raise self._failed(f"said \"{word} {value}\" while it was to run")

    def tell(self, line):
        """Something that the guest reads from its console."""
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("does not listen") from None

    def save(self, path):
        """Writes the machine's state to a file. The machine does nothing more."""
        self._monitor.save(path)

    def wait_until_off(self):
        self.wait_for("done")
        try:
            self._process.wait(timeout=SLOWEST_ANSWER_S)
        except subprocess.TimeoutExpired:
            raise self._failed("does not switch itself off") from None

    def stop(self):
        """Not one instruction of the guest happens from here until `go`."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # when all of its threads have stopped
        self.expect_running()

    def go(self):
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._listener.join()
        self._process.stdout.close()
        self._process.stdin.close()
        self._monitor.close()

    def last_words(self, count=40):
        return "\n  ".join(["its last words:", *self._said[-count:]])

    def _failed(self, what):
        return CheckFailed(f"the guest {what}; {self.last_words()}")
