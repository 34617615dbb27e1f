"""Where and with what campaigns are run: variants of the machine, media, witnesses, copies."""

import os
import random
import subprocess

from dax_vm import images
from dax_vm.common import CheckFailed
from dax_vm.machine import Hardware, Machine

POOL = "/pool/tatp.pool"
WITNESS_BYTES = 128 * images.MIB  # a power of two, as a PCI device has it
LOG_ENTRIES = 5_000_000  # of all users: a log that is full ends the run
POOL_BYTES_MAX = 48 << 30  # beyond the file system: the file is sparse; several zones of libpmemobj
SEGMENT_BYTES = 1 << 20


class Variant:
    """A processor and a device, and what flugs must find there."""

    def __init__(self, name, processor, device, medium, flush):
        self.name = name
        self.processor = processor
        self.device = device
        self.medium = medium
        self.flush = flush

    @property
    def file_system_offset(self):
        """Where the medium's file system begins."""
        return images.NAMESPACE_OFFSET if self.device == "nvdimm" else 0


VARIANTS = (
    Variant("clwb", "max", "nvdimm", "dax", "clwb"),
    Variant("clflushopt", "max,clwb=off", "nvdimm", "dax", "clflushopt"),
    Variant("clflush", "max,clwb=off,clflushopt=off", "nvdimm", "dax", "clflush"),
    Variant("virtio-pmem", "max", "virtio-pmem", "file", "msync"),
)


class Lab:
    """Where and with what campaigns are run: the guest's system, a directory, formatted media."""

    def __init__(self, system, flugs, accelerator, directory, options):
        self.system = system
        self.flugs = flugs
        self.accelerator = accelerator
        self.directory = directory
        self.options = options
        self.random = random.Random(options.seed)
        self._formatted = {}

    def hardware(self, variant):
        return Hardware(self.accelerator, variant.processor, variant.device)

    def path(self, name):
        return os.path.join(self.directory, name)

    def fresh_medium(self, variant, path):
        """Makes a medium with an empty file system, ready to be mounted with DAX."""
        if variant.device not in self._formatted:
            self._formatted[variant.device] = self._format(variant)
        images.copy(self._formatted[variant.device], path)
        return path

    def _format(self, variant):
        path = self.path(f"formatted.{variant.device}")
        images.create(path, images.MEDIUM_BYTES)
        if variant.device == "nvdimm":
            with Machine(self.system, self.hardware(variant), "format", [path]) as machine:
                machine.wait_for("formatted")
                machine.wait_until_off()
        images.make_file_system(path, variant.file_system_offset)
        return path

    def fresh_witness(self, path, subscribers):
        subprocess.run(
            [self.flugs, "crash-plan", path, "--pool", POOL, "--subscribers", str(subscribers),
             "--users", str(self.options.users), "--seed", str(self.options.seed),
             "--log-entries", str(LOG_ENTRIES // self.options.users),
             "--pool-bytes-max", str(POOL_BYTES_MAX), "--segment-bytes", str(SEGMENT_BYTES)],
            check=True)
        if os.path.getsize(path) > WITNESS_BYTES:
            raise CheckFailed(f"the witness has {os.path.getsize(path)} bytes, at most "
                              f"{WITNESS_BYTES} are mapped into the guest")
        os.truncate(path, WITNESS_BYTES)
        return path

    def keep(self, medium, witness, name):
        """What an audit found at fault stays for whoever looks into it; says where."""
        directory = self.options.keep
        if not directory:
            return "--keep DIR keeps such an image"
        os.makedirs(directory, exist_ok=True)
        images.copy(medium, os.path.join(directory, name + ".medium"))
        images.copy(witness, os.path.join(directory, name + ".witness"))
        return f"kept as {name} in {directory}"


class Cut:
    """Medium and witness as they were at one moment, while the machine stood still."""

    def __init__(self, lab, name, medium, witness):
        self.medium = lab.path(name + ".medium")
        self.witness = lab.path(name + ".witness")
        images.copy(medium, self.medium)
        images.copy(witness, self.witness)

    def remove(self):
        os.unlink(self.medium)
        os.unlink(self.witness)
