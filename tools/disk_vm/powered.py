"""A disk with its server and its witness, and the machines that are attached to it."""

import time

from dax_vm import images
from dax_vm.lab import Cut, Image
from dax_vm.machine import Machine
from disk_vm.disk import Disk
from disk_vm.server import DiskServer, Pace

# Seconds that a write and a flush take, at most: nothing; as a drive of flash; as a slow one.
PACES = (Pace(0, 0), Pace(0.0005, 0.002), Pace(0.002, 0.006))
# ext4 writes its superblock in place, with a checksum in the second of two sectors. A torn one is
# refused by the kernel and by e2fsck, before either looks at the journal of the file system.
SUPERBLOCK = range(1024, 2048)
REQUESTS_MAX = 200  # writes and flushes from a moment to the cut


class PoweredDisk:
    """The disk of an image, its server, and the figures of what cuts of the power left."""

    def __init__(self, lab, variant, image):
        self._lab = lab
        self._variant = variant
        self._random = lab.random
        self.image = image
        self.disk = Disk(image.medium, variant.sector_bytes, SUPERBLOCK)
        self.server = DiskServer(self.disk, image.path + ".socket", lab.options.seed)

    def close(self):
        self.server.close()
        self.disk.close()

    def machine(self, state=None):
        """Boots, or goes on from a state."""
        self.server.pace = self._random.choice(PACES)
        return Machine(self._lab.system, self._lab.hardware(self._variant), "disk",
                       [self.server.path], [self.image.witness], state=state)

    def freeze_soon(self):
        self.server.freeze_after(self._random.randint(1, REQUESTS_MAX))

    def run_a_while(self):
        """Until any time, or until any request of the disk, which is frozen then."""
        if self._random.random() < 0.5:
            time.sleep(self._random.uniform(0.01, self._lab.options.run_ms / 1000))
        else:
            self.freeze_soon()
            self.server.wait_until_frozen()

    def cut(self, name, figures, kind=None):
        """What a cut of the power now may leave, and the witness of now; of a machine that stands
        still or is dead."""
        image = Image(f"{self.image.path}.{name}")
        figures.add(self.disk.cut(self._random, image.medium, kind))
        images.copy(self.image.witness, image.witness)
        return image

    def lose_power(self, name, figures):
        """The same with the disk itself. A copy of it."""
        figures.add(self.disk.lose_power(self._random))
        return self.copy(name)

    def forget_flushes(self, name, count):
        """An image of a disk that has lied at its last flushes, or None if there were none."""
        image = Image(f"{self.image.path}.{name}")
        flushes = self.disk.cut_without_flushes(count, image.medium)
        images.copy(self.image.witness, image.witness)
        if flushes > 0:
            return image
        image.remove()
        return None

    def copy(self, name):
        """Of what is durable."""
        return Cut(f"{self.image.path}.{name}", self.image)


class CutFigures:
    """Counts cuts and what they left."""

    def __init__(self):
        self.figures = {"cuts_with_volatile_sectors": 0, "volatile_sectors": 0,
                        "volatile_sectors_left": 0, "kinds": {}}

    def add(self, remains):
        kinds = self.figures["kinds"]
        kinds[remains.kind] = kinds.get(remains.kind, 0) + 1
        self.figures["volatile_sectors"] += remains.sectors
        self.figures["volatile_sectors_left"] += remains.sectors_left
        self.figures["cuts_with_volatile_sectors"] += remains.sectors > 0


def save_state(lab, variant, path):
    """Boots a machine of the variant and saves its state, in front of what depends on the disk."""
    powered = PoweredDisk(lab, variant, lab.fresh_image(variant, "booting", 1))
    try:
        with powered.machine() as machine:
            machine.wait_for("ready")
            machine.save(path)
    finally:
        powered.close()
    powered.image.remove()
    return path
