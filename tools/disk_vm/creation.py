"""Power cuts while a machine makes one pool after another: what is left is a whole one, or none."""

from dax_vm.audits import HostAuditor
from dax_vm.common import CheckFailed
from disk_vm.powered import CutFigures, PoweredDisk

SUBSCRIBERS = 10


class CreationCampaign:
    """Images of a machine that stands still meanwhile."""

    def __init__(self, lab, variant, state, image_count, on_progress):
        self._lab = lab
        self._variant = variant
        self._state = state
        self._image_count = image_count
        self._on_progress = on_progress
        self._host = HostAuditor(lab, variant)
        self._cuts = CutFigures()
        self.figures = {"variant": variant.name, "images": 0, "absent": 0, "whole": 0,
                        **self._cuts.figures}

    def run(self):
        image = self._lab.fresh_image(self._variant, "creation", SUBSCRIBERS)
        powered = PoweredDisk(self._lab, self._variant, image)
        try:
            with powered.machine(self._state) as machine:
                machine.tell("create defaults")
                machine.wait_for("running")
                for _ in range(self._image_count):
                    powered.run_a_while()
                    machine.stop()
                    self._audit(powered.cut("cut", self._cuts))
                    machine.go()
                    powered.server.thaw()
                    self._on_progress(1)
            powered.server.wait_until_idle()
        finally:
            powered.close()
            self.figures.update(self._cuts.figures)
        image.remove()

    def _audit(self, image):
        try:
            self.figures[self._host.audit_created(image).kind] += 1
        except CheckFailed as failure:
            name = f"creation.{self.figures['images']}"
            raise CheckFailed(f"{name}: {failure}\n{self._lab.keep(image, name)}") from None
        self.figures["images"] += 1
        image.remove()
