"""TATP on a disk of a virtual machine, whose power is cut again and again."""

import json

from dax_vm.audits import FIGURES, HostAuditor, Verdict
from dax_vm.campaign import share
from dax_vm.common import CheckFailed
from disk_vm.disk import FLUSHES_REMEMBERED
from disk_vm.powered import CutFigures, PoweredDisk

OPENINGS_CUT = 0.125  # share of lives whose power is cut while the pool is being opened
LIES_SEEN = 3  # so many lies are looked for at every kill, then at one kill in ten
LIES_EVERY = 10
LIES_ENOUGH = 10  # four of five lies are seen: most of the others took back a checkpoint only
UNFLUSHED_WRITES = 100  # of a guest that does not flush: some commits each


class KillCampaign:
    """Lives of machines of one variant, each on the disk that the last one's death left. The host
    audits what a cut may leave; the next life begins with the guest's audit of what it left."""

    def __init__(self, lab, variant, state, counts, on_progress):
        self._lab = lab
        self._variant = variant
        self._state = state  # of a machine that has booted
        self._kills, self._images = counts
        self._images_owed = 0
        self._on_progress = on_progress
        self._random = lab.random
        self._host = HostAuditor(lab, variant)
        self._powered = None
        self._left = None  # a copy of what the last cut left, and what the host said of it
        self._cuts = CutFigures()
        self.figures = {"variant": variant.name, "kills": 0, "kills_while_opening": 0, "images": 0,
                        "audits_in_guest": 0, "writes": 0, "flushes": 0, "lies": 0, "lies_seen": 0,
                        "loss_seen_without_barriers": None, **dict.fromkeys(FIGURES, 0)}
        self._add_figures_of_cuts()

    def _add_figures_of_cuts(self):
        self.figures.update(self._cuts.figures)

    def run(self):
        image = self._lab.fresh_image(self._variant, "lives", self._lab.options.subscribers)
        self._powered = PoweredDisk(self._lab, self._variant, image)
        try:
            for life in range(self._kills):
                self._live(life)
                if life == 0:
                    self._live_without_barriers()
        finally:
            self._add_figures_of_cuts()
            self.figures["writes"] = self._powered.server.writes
            self.figures["flushes"] = self._powered.server.flushes
            self._powered.close()
        self._left[0].remove()
        image.remove()
        if self.figures["lies_seen"] == 0 and self.figures["lies"] >= LIES_ENOUGH:
            raise CheckFailed(f"{self._variant.name}: {self.figures['lies']} disks had forgotten "
                              "flushes, and no audit has found a loss")

    def _live(self, life):
        is_cut_while_opening = life > 0 and self._random.random() < OPENINGS_CUT
        self._images_owed += share(self._images, self._kills, life)
        server = self._powered.server
        with self._powered.machine(self._state) as machine:
            if is_cut_while_opening:
                self._powered.freeze_soon()
            machine.tell("run defaults " + ("--check --verify" if life > 0 else "--populate"))
            self._wait_for_opening(machine, is_cut_while_opening)
            if not is_cut_while_opening:
                self._take_images(machine)
                machine.expect_running()
                self._powered.run_a_while()
        server.wait_until_idle()
        self.figures["kills"] += 1
        self.figures["kills_while_opening"] += is_cut_while_opening
        self._lie()
        self._cut_power()
        self._on_progress(1)

    def _wait_for_opening(self, machine, is_cut):
        """Its end, or the cut in the midst of it."""
        try:
            if is_cut:
                self._powered.server.wait_until_frozen()
            else:
                self._hear_report(machine)
        except CheckFailed as failure:
            what = f"{failure}\nthe guest: {machine.last_words()}"
            if self._left:
                image, on_host = self._left
                what += f"\non the host: {on_host}\n{self._lab.keep(image, self._name())}"
            raise CheckFailed(f"{self._name()}: {what}") from None

    def _hear_report(self, machine):
        """What flugs says of the pool that it has opened. It must say what the host has said."""
        text = machine.wait_for("report")
        try:
            report = json.loads(text)
        except ValueError:  # it did not get that far
            raise CheckFailed("opening failed") from None
        verdict = Verdict(0, text)
        if not verdict.is_good or (self._left and not verdict.agrees_with(self._left[1])):
            raise CheckFailed(f"in the guest: {verdict}")
        machine.wait_for("running")
        found = (report["medium"], report["flush"])
        if found != (self._variant.medium, self._variant.flush):
            raise CheckFailed(f"medium and flush are {found}")
        self.figures["audits_in_guest"] += self._left is not None

    def _name(self):
        """Of an image, for those who look for it."""
        return (f"{self._variant.name.replace(' ', '-')}.{self.figures['kills']}."
                f"{self.figures['images']}")

    def _take_images(self, machine):
        """The machine stands still while an image is made, and while it is audited."""
        while self._images_owed > 0:
            self._powered.run_a_while()
            machine.stop()
            image = self._powered.cut("cut", self._cuts)
            self._audit(image)
            image.remove()
            self._images_owed -= 1
            self.figures["images"] += 1
            machine.go()
            self._powered.server.thaw()
            self._on_progress(1)

    def _cut_power(self):
        """The machine is dead. Its disk goes on with what the cut leaves."""
        if self._left:
            self._left[0].remove()
        image = self._powered.lose_power("left", self._cuts)
        self._left = (image, self._audit(image))

    def _audit(self, image):
        """It must be good."""
        try:
            verdict = self._host.audit(image)
        except CheckFailed as failure:
            self._report_bad_image(image, failure)
        for name in FIGURES:
            self.figures[name] += verdict.figures[name]
        if not verdict.is_good:
            self._report_bad_image(image, verdict)
        return verdict

    def _report_bad_image(self, image, what):
        raise CheckFailed(f"{self._name()}: {what}\n{self._lab.keep(image, self._name())}")

    def _lie(self):
        """A disk that had done nothing at its last flushes: an audit should see that, or what it
        says of the others is worth nothing."""
        figures = self.figures
        if figures["lies_seen"] >= LIES_SEEN and figures["kills"] % LIES_EVERY != 0:
            return
        image = self._powered.forget_flushes("lie", self._random.randint(1, FLUSHES_REMEMBERED))
        if image:
            figures["lies"] += 1
            figures["lies_seen"] += self._finds_loss(image)
            image.remove()

    def _finds_loss(self, image):
        try:
            return self._host.audit(image).sees_only_loss()
        except CheckFailed:  # the file system is damaged: another loss
            return False

    def _live_without_barriers(self):
        """A guest that acknowledges transactions and flushes no disk, on a copy of the disk: its
        power cut loses them, and the audit must say so."""
        powered = PoweredDisk(self._lab, self._variant, self._powered.copy("unflushed"))
        try:
            with powered.machine(self._state) as machine:
                machine.tell("run nobarrier --check --verify")
                machine.wait_for("running")
                powered.server.freeze_after(UNFLUSHED_WRITES)
                powered.server.wait_until_frozen()
            powered.server.wait_until_idle()
            image = powered.cut("cut", CutFigures(), "nothing")
        finally:
            powered.close()
        verdict = self._host.audit(image)
        self.figures["loss_seen_without_barriers"] = verdict.sees_only_loss()
        if not verdict.sees_only_loss():
            raise CheckFailed(f"{self._variant.name}: a guest that flushes no disk has lost "
                              f"transactions, and the audit says: {verdict}")
        image.remove()
        powered.image.remove()
