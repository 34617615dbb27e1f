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
    """A processor and a device, what flugs must find there, and more options of the witness's
    plan."""

    def __init__(self, name, processor, device, medium, flush, plan=(), sector_bytes=512):
        self.name = name
        self.processor = processor
        self.device = device
        self.medium = medium
        self.flush = flush
        self.plan = plan
        self.sector_bytes = sector_bytes  # of a disk

    @property
    def file_system_offset(self):
        """Where the medium's file system begins."""
        return images.NAMESPACE_OFFSET if self.device.startswith("nvdimm") else 0


VARIANTS = (
    Variant("clwb", "max", "nvdimm", "dax", "clwb"),
    Variant("clflushopt", "max,clwb=off", "nvdimm", "dax", "clflushopt"),
    Variant("clflush", "max,clwb=off,clflushopt=off", "nvdimm", "dax", "clflush"),
    Variant("eadr", "max", "nvdimm-eadr", "dax", "eadr"),
    Variant("virtio-pmem", "max", "virtio-pmem", "file", "journal"),
)


class Lab:
    """Where and with what campaigns are run: the guest's system, a directory, formatted media."""

    def __init__(self, system, flugs, accelerator, directory, options,
                 witness_bytes=WITNESS_BYTES, log_entries=LOG_ENTRIES):
        self.system = system
        self.flugs = flugs
        self.accelerator = accelerator
        self.directory = directory
        self.options = options
        self.random = random.Random(options.seed)
        self._witness_bytes = witness_bytes
        self._log_entries = log_entries
        self._formatted = {}

    def hardware(self, variant, processors=2):
        return Hardware(self.accelerator, variant.processor, variant.device, processors,
                        variant.sector_bytes)

    def path(self, name):
        return os.path.join(self.directory, name)

    def fresh_medium(self, variant, path):
        """Makes a medium with an empty file system, ready to be mounted with DAX."""
        kind = variant.file_system_offset  # of NVDIMMs all are the same
        if kind not in self._formatted:
            self._formatted[kind] = self._format(variant)
        images.copy(self._formatted[kind], path)
        return path

    def _format(self, variant):
        path = self.path(f"formatted.{variant.device}")
        images.create(path, images.MEDIUM_BYTES)
        if variant.device.startswith("nvdimm"):
            with Machine(self.system, self.hardware(variant, 1), "format", [path]) as machine:
                machine.wait_for("formatted")
                machine.wait_until_off()
        images.make_file_system(path, variant.file_system_offset)
        return path

    def fresh_image(self, variant, name, subscribers):
        image = Image(self.path(name))
        self.fresh_medium(variant, image.medium)
        self._make_witness(image.witness, subscribers, variant.plan)
        return image

    def _make_witness(self, path, subscribers, plan):
        subprocess.run(
            [self.flugs, "crash-plan", path, "--pool", POOL, "--subscribers", str(subscribers),
             "--users", str(self.options.users), "--seed", str(self.options.seed),
             "--log-entries", str(self._log_entries // self.options.users),
             "--pool-bytes-max", str(POOL_BYTES_MAX), "--segment-bytes", str(SEGMENT_BYTES),
             *plan],
            check=True)
        if os.path.getsize(path) > self._witness_bytes:
            raise CheckFailed(f"the witness has {os.path.getsize(path)} bytes, at most "
                              f"{self._witness_bytes} are mapped into the guest")
        os.truncate(path, self._witness_bytes)

    def keep(self, image, name):
        """What an audit found at fault stays for whoever looks into it; says where."""
        if not self.options.keep:
            return "--keep DIR keeps such an image"
        os.makedirs(self.options.keep, exist_ok=True)
        path = os.path.join(self.options.keep, name)
        Cut(path, image)
        return f"kept as {path}.medium, {path}.witness"


class Image:
    """What a machine leaves: its medium, and the witness of what its users were promised."""

    def __init__(self, path):
        self.path = path
        self.medium = path + ".medium"
        self.witness = path + ".witness"

    def remove(self):
        os.unlink(self.medium)
        os.unlink(self.witness)


class Cut(Image):
    """A copy of an image, whose machine stands still meanwhile."""

    def __init__(self, path, image):
        super().__init__(path)
        images.copy(image.medium, self.medium)
        images.copy(image.witness, self.witness)
