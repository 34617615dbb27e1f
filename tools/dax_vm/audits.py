"""Audits of crash images: on the host, which takes a fraction of a second, and in a guest, whose
kernel mounts the medium."""

import json
import os
import signal
import subprocess

from dax_vm import ext4, images
from dax_vm.common import CheckFailed
from dax_vm.lab import POOL, Cut
from dax_vm.machine import MEDIA_MAX, SLOWEST_ANSWER_S, Machine

POOL_ON_MEDIUM = "/" + os.path.basename(POOL)
JOURNAL_ENDING = ".journal"

FIGURES = ("audited_transactions", "lost_acknowledged", "transactions_completed",
           "transactions_undone")


class Verdict:
    """What flugs says of a pool and of what its users were promised."""

    def __init__(self, status, text, words=""):
        self._status = status
        self._text = text
        self._words = words
        try:
            report = json.loads(text)
        except ValueError:  # it said nothing, or died while it spoke
            report = {}
        self.figures = {name: report.get(name, 0) for name in FIGURES}
        self.is_good = status == 0 and report.get("good") is True and not self._sees_loss()

    def _sees_loss(self):
        return self.figures["lost_acknowledged"] > 0

    def sees_only_loss(self):
        """That is what is wrong, and nothing prevented it from being found out."""
        return self._status == 1 and self._sees_loss()

    def agrees_with(self, other):
        return self.is_good == other.is_good and self.figures == other.figures

    def __str__(self):
        return f"exit status {self._status}, {self._text} {self._words}".strip()


class CreatedVerdict:
    """What flugs makes of a pool that was being made."""

    KINDS = {"absent": "absent", "0": "whole"}

    def __init__(self, status, words):
        self.status = status  # of opening it, or "absent"
        self.words = words

    @property
    def kind(self):
        """CheckFailed when it is none of those which may be left."""
        kind = self.KINDS.get(self.status)
        if kind is None:
            raise CheckFailed(str(self))
        return kind

    def __str__(self):
        return f"opening what was left of a creation ended with {self.status}: {self.words}"


class HostAuditor:
    """Replays the file system's journal and opens the pool in memory of the host. Images stay as
    they are; a machine that writes to one must stand still."""

    def __init__(self, lab, variant):
        self._flugs = lab.flugs
        self._offset = variant.file_system_offset
        self._file_system = lab.path("audited.ext4")
        self._pool = lab.path("audited.pool")
        self._witness = lab.path("audited.witness")

    def audit(self, image):
        try:
            if not self._recover_pool(image.medium):
                raise CheckFailed("the pool is not in the file system")
            images.copy(image.witness, self._witness)
            done = self._run("crash-child", self._witness, "--pool", self._pool, "--check",
                             "--verify", "--report")
            return Verdict(done.returncode, done.stdout, done.stderr)
        finally:
            self._clean_up()

    def audit_created(self, image):
        """A pool that opens must be clean as well."""
        try:
            if not self._recover_pool(image.medium):
                return CreatedVerdict("absent", "")
            opened = self._run("pool", "info", self._pool)
            if opened.returncode == 0:
                checked = self._run("pool", "check", self._pool)
                if checked.returncode != 0:
                    raise CheckFailed("a pool that was being made opened and is not clean: " +
                                      checked.stdout + checked.stderr)
            return CreatedVerdict(str(opened.returncode), opened.stderr)
        finally:
            self._clean_up()

    def _recover_pool(self, medium):
        images.copy(medium, self._file_system, self._offset)
        ext4.replay_journal(self._file_system)
        found = ext4.extract(self._file_system, POOL_ON_MEDIUM, self._pool)
        # A pool that is not on DAX has a journal beside it.
        ext4.extract(self._file_system, POOL_ON_MEDIUM + JOURNAL_ENDING,
                     self._pool + JOURNAL_ENDING)
        ext4.expect_consistent(self._file_system)
        return found

    def _run(self, *arguments):
        try:
            done = subprocess.run([self._flugs, *arguments], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SLOWEST_ANSWER_S,
                                  check=False)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"flugs {arguments[0]} hangs") from None
        if done.returncode < 0:
            raise CheckFailed(f"flugs {arguments[0]} died of "
                              f"{signal.Signals(-done.returncode).name}: {done.stderr}")
        return done

    def _clean_up(self):
        for path in (self._file_system, self._pool, self._pool + JOURNAL_ENDING, self._witness):
            if os.path.exists(path):
                os.unlink(path)


class GuestAuditor:
    """Attaches copies of images to a machine that mounts and opens one after another."""

    IMAGES_MAX = MEDIA_MAX

    def __init__(self, lab, variant):
        self._lab = lab
        self._hardware = lab.hardware(variant, 1)

    def audit(self, audited):
        """A verdict for each of the images."""
        return self._run("audit", audited, self._hear_verdict)

    def audit_created(self, audited):
        """As above; in each one's place another pool is made besides."""
        return self._run("audit_created", audited, self._hear_created)

    def _run(self, job, audited, hear):
        cuts = []
        try:
            for number, image in enumerate(audited):
                cuts.append(Cut(self._lab.path(f"guest.{number}"), image))
            with Machine(self._lab.system, self._hardware, job, [cut.medium for cut in cuts],
                         [cut.witness for cut in cuts]) as machine:
                verdicts = [hear(machine) for _ in cuts]
                machine.wait_until_off()
            return verdicts
        finally:
            for cut in cuts:
                cut.remove()

    @staticmethod
    def _hear_verdict(machine):
        _, status, text = fields(machine.wait_for("audited"), 3)
        return Verdict(int(status), text, "" if status == "0" else machine.last_words())

    @staticmethod
    def _hear_created(machine):
        _, opened, made, text = fields(machine.wait_for("audited"), 4)
        if made != "0":
            raise CheckFailed("in place of what was left of a creation, making a new pool ended "
                              f"with {made}; {machine.last_words()}")
        return CreatedVerdict(opened, text)


def fields(answer, count):
    """Its words, the last of which takes the rest and may be empty."""
    words = answer.split(" ", count - 1)
    return words + [""] * (count - len(words))
