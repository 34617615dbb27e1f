"""What is done to flugs in the machine: crash images, kills, pools cut short while being made."""

import json
import time

from dax_vm import images
from dax_vm.audits import FIGURES, GuestAuditor, HostAuditor, Verdict
from dax_vm.common import CheckFailed
from dax_vm.lab import Cut
from dax_vm.machine import Machine

# Images of one life of a machine: its log must not fill up, and audits read all of it.
IMAGES_PER_LIFE = 100
BEFORE_FIRST_KILL_S = 0.3
CREATION_S = 0.2  # at most between two images of pools being made


def share(total, parts, index):
    """The part with that index of a total that is spread evenly."""
    return total * (index + 1) // parts - total * index // parts


class Sampler:
    """Which images a guest audits besides the host, and the first of them always."""

    def __init__(self, every):
        self._every = every
        self._next = 0

    def takes_next(self):
        self._next += 1
        return (self._next - 1) % self._every == 0


class TatpCampaign:
    """TATP on one variant: images in mid-run, then a kill, again and again; everything
    acknowledged must be there."""

    def __init__(self, lab, variant, image_count, kill_count, on_progress):
        self._lab = lab
        self._variant = variant
        self._image_count = image_count
        self._lives = max(1, kill_count, -(-image_count // IMAGES_PER_LIFE))
        self.steps = image_count + self._lives  # of its progress
        self._on_progress = on_progress
        self._host = HostAuditor(lab, variant)
        self._guest = GuestAuditor(lab, variant)
        self._sampler = Sampler(lab.options.guest_every)
        self._samples = []  # cuts, each with what the host said of it
        self._cut_number = 0
        self._image = None  # of the machine, while the campaign runs
        self.figures = {"variant": variant.name, "medium": None, "flush": None, "map_sync": None,
                        "images": 0, "images_in_guest": 0, "kills": 0,
                        "loss_seen_on_host": None, "loss_seen_in_guest": None,
                        **dict.fromkeys(FIGURES, 0)}

    def run(self):
        self._image = self._lab.fresh_image(self._variant, self._variant.name,
                                            self._lab.options.subscribers)
        early = self._first_life()
        for life in range(1, self._lives):
            self._next_life(share(self._image_count, self._lives, life))
        self._audit_last(early)
        early.remove()
        self._image.remove()

    def _first_life(self):
        """Returns an image which lacks what the witness that comes with it was told later."""
        with self._boot("--populate") as machine:
            self._expect_environment(machine)
            machine.stop()
            early = self._cut()
            self._take_images(machine, share(self._image_count, self._lives, 0))
            machine.go()
            time.sleep(BEFORE_FIRST_KILL_S)  # for something to be acknowledged
            machine.expect_running()
        self._count_kill()
        images.copy(self._image.witness, early.witness)
        self._expect_loss("loss_seen_on_host", self._host.audit(early))
        return early

    def _next_life(self, image_count):
        """A guest opens what the last one's death left, and goes on."""
        with self._boot("--check --verify") as machine:
            self._expect_good(self._wait_until_running(machine), "after a kill")
            machine.stop()
            self._take_images(machine, image_count)
            machine.go()
            self._run_a_while()
            machine.expect_running()
        self._count_kill()

    def _count_kill(self):
        self.figures["kills"] += 1
        self._on_progress(1)

    def _boot(self, task):
        return Machine(self._lab.system, self._lab.hardware(self._variant), "run",
                       [self._image.medium], [self._image.witness], task.split())

    def _expect_environment(self, machine):
        """What flugs says that it found must be what the machine has."""
        self._wait_until_running(machine)
        wanted = (self._variant.medium, self._variant.flush,
                  "yes" if self._variant.medium == "dax" else "no")
        found = tuple(self.figures[key] for key in ("medium", "flush", "map_sync"))
        if found != wanted:
            raise CheckFailed(f"{self._variant.name}: medium, flush, MAP_SYNC are {found}, "
                              f"expected {wanted}")

    def _wait_until_running(self, machine):
        """What flugs says of the pool that it has opened."""
        text = machine.wait_for("report")
        try:
            report = json.loads(text)
        except ValueError:  # it did not get that far
            raise CheckFailed(f"{self._variant.name}: opening failed; "
                              f"{machine.last_words()}") from None
        self.figures["medium"] = report["medium"]
        self.figures["flush"] = report["flush"]
        self.figures["map_sync"] = machine.wait_for("map_sync")
        machine.wait_for("running")
        return Verdict(0, text)

    def _take_images(self, machine, count):
        """The machine stands still before, after, and while one is audited."""
        for _ in range(count):
            machine.go()
            self._run_a_while()
            machine.stop()
            self._audit_image()
            self._on_progress(1)

    def _run_a_while(self):
        time.sleep(self._lab.random.uniform(0.01, self._lab.options.run_ms / 1000))

    def _cut(self):
        self._cut_number += 1
        return Cut(f"{self._image.path}.{self._cut_number}", self._image)

    def _audit_image(self):
        try:
            verdict = self._host.audit(self._image)
        except CheckFailed as failure:
            self._report_bad_image(str(failure))
        self._add(verdict)
        if not verdict.is_good:
            self._report_bad_image(str(verdict))
        self.figures["images"] += 1
        if self._sampler.takes_next():
            self._samples.append((self._cut(), verdict))
            if len(self._samples) == GuestAuditor.IMAGES_MAX - 2:  # the last audit has two more
                self._audit_in_guest([])

    def _report_bad_image(self, on_host):
        """With what a guest says of the same image."""
        try:
            in_guest = str(self._guest.audit([self._image])[0])
        except CheckFailed as failure:
            in_guest = str(failure)
        self._disagree(self._image, on_host, in_guest)

    def _disagree(self, image, on_host, in_guest):
        kept = self._lab.keep(image, f"{self._variant.name}.{self.figures['images']}")
        raise CheckFailed(f"{self._variant.name}, image {self.figures['images']}:\n"
                          f"on the host: {on_host}\nin a guest: {in_guest}\n{kept}")

    def _audit_in_guest(self, more):
        """The samples, of which it must say what the host said; verdicts of `more`."""
        verdicts = self._guest.audit([cut for cut, _ in self._samples] + more)
        for (cut, on_host), in_guest in zip(self._samples, verdicts):
            if not in_guest.agrees_with(on_host):
                self._disagree(cut, on_host, in_guest)
            self.figures["images_in_guest"] += 1
            cut.remove()
        rest = verdicts[len(self._samples):]
        self._samples = []
        return rest

    def _audit_last(self, early):
        """What the last machine's death left; and the image that lacks something."""
        last, mismatch = self._audit_in_guest([self._image, early])
        self._expect_good(last, "after the last kill")
        self._expect_loss("loss_seen_in_guest", mismatch)

    def _expect_good(self, verdict, when):
        self._add(verdict)
        if not verdict.is_good:
            raise CheckFailed(f"{self._variant.name}, {when}: {verdict}")

    def _add(self, verdict):
        for name in FIGURES:
            self.figures[name] += verdict.figures[name]

    def _expect_loss(self, key, verdict):
        """An old image with a newer witness lacks what was acknowledged between: the audit must
        say so, or what it says of the others is worth nothing."""
        self.figures[key] = verdict.sees_only_loss()
        if not self.figures[key]:
            raise CheckFailed(f"{self._variant.name}: transactions are missing from an old image, "
                              f"and the audit says: {verdict}")


class CreationCampaign:
    """Images of a machine that makes one pool after another: what is left is a whole one, or
    none."""

    def __init__(self, lab, variant, image_count, on_progress):
        self._lab = lab
        self._variant = variant
        self._image_count = image_count
        self._on_progress = on_progress
        self._hardware = lab.hardware(variant)
        self._host = HostAuditor(lab, variant)
        self._guest = GuestAuditor(lab, variant)
        self._sampler = Sampler(lab.options.guest_every)
        self._samples = []  # cuts, each with what the host said of it
        self.figures = {"variant": variant.name, "images": 0, "images_in_guest": 0, "absent": 0,
                        "whole": 0}
        self._image = None  # of the machine, while the campaign runs

    def run(self):
        self._image = self._lab.fresh_image(self._variant, "creation", 10)
        with Machine(self._lab.system, self._hardware, "create",
                     [self._image.medium], [self._image.witness]) as machine:
            machine.wait_for("running")
            for _ in range(self._image_count):
                time.sleep(self._lab.random.uniform(0.01, CREATION_S))
                machine.stop()
                self._audit_image()
                machine.go()
                self._on_progress(1)
        if self._samples:
            self._audit_in_guest()
        self._image.remove()

    def _audit_image(self):
        try:
            verdict = self._host.audit_created(self._image)
            self.figures[verdict.kind] += 1
        except CheckFailed as failure:
            self._fail(self._image, str(failure))
        self.figures["images"] += 1
        if self._sampler.takes_next():
            cut = Cut(f"{self._image.path}.{self.figures['images']}", self._image)
            self._samples.append((cut, verdict))
            if len(self._samples) == GuestAuditor.IMAGES_MAX:
                self._audit_in_guest()

    def _fail(self, image, what):
        name = f"creation.{self.figures['images']}"
        raise CheckFailed(f"{name}: {what}\n{self._lab.keep(image, name)}")

    def _audit_in_guest(self):
        """It must make of the samples what the host made of them."""
        verdicts = self._guest.audit_created([cut for cut, _ in self._samples])
        for (cut, on_host), in_guest in zip(self._samples, verdicts):
            if in_guest.kind != on_host.kind:
                self._fail(cut, f"on the host: {on_host}\nin a guest: {in_guest}")
            self.figures["images_in_guest"] += 1
            cut.remove()
        self._samples = []
