"""What is done to flugs in the machine: crash images, kills, pools cut short while being made."""

import json
import os
import random
import subprocess
import time

from dax_vm import images
from dax_vm.common import CheckFailed
from dax_vm.machine import MEDIA_MAX, Hardware, Machine

POOL = "/pool/tatp.pool"
WITNESS_BYTES = 128 * images.MIB  # a power of two, as a PCI device has it
LOG_ENTRIES = 1_000_000
POOL_BYTES_MAX = 48 << 30  # beyond the file system: the file is sparse; several zones of libpmemobj
SEGMENT_BYTES = 1 << 20
BATCH = MEDIA_MAX  # images that one machine audits


class Variant:
    """A processor and a device, and what flugs must find there."""

    def __init__(self, name, processor, device, medium, flush):
        self.name = name
        self.processor = processor
        self.device = device
        self.medium = medium
        self.flush = flush


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

    def fresh_medium(self, variant, name):
        """A medium with an empty file system, ready to be mounted with DAX."""
        if variant.device not in self._formatted:
            self._formatted[variant.device] = self._format(variant)
        path = self.path(name)
        images.copy(self._formatted[variant.device], path)
        return path

    def _format(self, variant):
        path = self.path(f"formatted.{variant.device}")
        images.create(path, images.MEDIUM_BYTES)
        offset = 0
        if variant.device == "nvdimm":
            offset = images.NAMESPACE_OFFSET
            with Machine(self.system, self.hardware(variant), "format", [path]) as machine:
                machine.wait_for("formatted")
                machine.wait_until_off()
        images.make_file_system(path, offset)
        return path

    def fresh_witness(self, name, subscribers):
        path = self.path(name)
        subprocess.run(
            [self.flugs, "crash-plan", path, "--pool", POOL, "--subscribers", str(subscribers),
             "--users", str(self.options.users), "--seed", str(self.options.seed),
             "--log-entries", str(LOG_ENTRIES), "--pool-bytes-max", str(POOL_BYTES_MAX),
             "--segment-bytes", str(SEGMENT_BYTES)], check=True)
        if os.path.getsize(path) > WITNESS_BYTES:
            raise CheckFailed(f"the witness has {os.path.getsize(path)} bytes, at most "
                              f"{WITNESS_BYTES} are mapped into the guest")
        os.truncate(path, WITNESS_BYTES)
        return path


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


def batches(total):
    """Sizes of as few batches as possible, all nearly alike."""
    count = -(-total // BATCH)
    return [total * (i + 1) // count - total * i // count for i in range(count)]


def fields(answer, count):
    """Its words, the last of which takes the rest and may be empty."""
    words = answer.split(" ", count - 1)
    return words + [""] * (count - len(words))


class TatpCampaign:
    """TATP on one variant: images in mid-run, then kills; everything acknowledged must be there."""

    def __init__(self, lab, variant, image_count, kill_count, on_progress):
        self._lab = lab
        self._variant = variant
        self._image_count = image_count
        self._kill_count = kill_count
        self._on_progress = on_progress
        self._hardware = lab.hardware(variant)
        self._cut_number = 0
        self.figures = {"variant": variant.name, "medium": None, "flush": None, "map_sync": None,
                        "images": 0, "kills": 0, "audited_transactions": 0,
                        "transactions_completed": 0, "transactions_undone": 0,
                        "lost_acknowledged": 0, "mismatch_caught": None}

    def run(self):
        name = self._variant.name
        medium = self._lab.fresh_medium(self._variant, name + ".medium")
        witness = self._lab.fresh_witness(name + ".witness", self._lab.options.subscribers)
        with self._boot("--populate", medium, witness) as machine:
            self._expect_environment(machine)
            machine.stop()
            early = self._cut(medium, witness)
            self._take_images(machine, medium, witness)
        # As the first machine died, of which `early` lacks what it did later.
        images.copy(witness, early.witness)
        self._kill_again_and_again(medium, witness)
        self._audit([self._cut(medium, witness)], early)
        os.unlink(medium)
        os.unlink(witness)

    def _boot(self, task, medium, witness):
        arguments = task.split()
        return Machine(self._lab.system, self._hardware, "run", [medium], [witness], arguments)

    def _expect_environment(self, machine):
        """What flugs says that it found must be what the machine has."""
        report = self._wait_until_running(machine)
        self.figures["medium"] = report["medium"]
        self.figures["flush"] = report["flush"]
        wanted = (self._variant.medium, self._variant.flush,
                  "yes" if self._variant.medium == "dax" else "no")
        found = (report["medium"], report["flush"], self.figures["map_sync"])
        if found != wanted:
            raise CheckFailed(f"{self._variant.name}: medium, flush, MAP_SYNC are {found}, "
                              f"expected {wanted}")

    def _wait_until_running(self, machine):
        report = json.loads(machine.wait_for("report"))
        self.figures["map_sync"] = machine.wait_for("map_sync")
        machine.wait_for("running")
        return report

    def _take_images(self, machine, medium, witness):
        """Takes and audits them a batch at a time; meanwhile the machine stands still."""
        for count in batches(self._image_count):
            cuts = []
            for _ in range(count):
                machine.go()
                self._run_a_while()
                machine.stop()
                cuts.append(self._cut(medium, witness))
            self._audit(cuts)
            self.figures["images"] += count
            self._on_progress(count)
        machine.go()
        time.sleep(1)  # for something to be acknowledged that an early image lacks
        machine.stop()

    def _cut(self, medium, witness):
        self._cut_number += 1
        return Cut(self._lab, f"{self._variant.name}.{self._cut_number}", medium, witness)

    def _run_a_while(self):
        time.sleep(self._lab.random.uniform(0.02, self._lab.options.run_ms / 1000))

    def _audit(self, cuts, early=None):
        """Of images that must hold everything; and of one that cannot, if there is one."""
        everything = cuts + ([early] if early else [])
        with Machine(self._lab.system, self._hardware, "audit", [c.medium for c in everything],
                     [c.witness for c in everything]) as machine:
            for cut in cuts:
                _, status, text = fields(machine.wait_for("audited"), 3)
                if status != "0":
                    raise CheckFailed(f"{self._variant.name}: audit of {cut.medium} ended with "
                                      f"{status}: {text}\n" + machine.last_words())
                self._add(json.loads(text))
            if early:
                self._expect_loss(machine)
            machine.wait_until_off()
        for cut in everything:
            cut.remove()

    def _add(self, report):
        for key in ("audited_transactions", "lost_acknowledged", "transactions_completed",
                    "transactions_undone"):
            self.figures[key] += report[key]
        if not report["good"]:
            raise CheckFailed(f"{self._variant.name}: {report}")

    def _expect_loss(self, machine):
        """An old image with a newer witness lacks what was acknowledged between: the audit must
        say so, or what it says of the others is worth nothing."""
        _, status, text = fields(machine.wait_for("audited"), 3)
        caught = status == "1" and json.loads(text)["lost_acknowledged"] > 0
        self.figures["mismatch_caught"] = caught
        if not caught:
            raise CheckFailed(f"{self._variant.name}: transactions are missing from an old image, "
                              f"and the audit ended with {status}: {text}")

    def _kill_again_and_again(self, medium, witness):
        for _ in range(self._kill_count):
            self._run_until_killed(medium, witness)
            self._on_progress(1)

    def _run_until_killed(self, medium, witness):
        with self._boot("--check --verify", medium, witness) as machine:
            self._add(self._wait_until_running(machine))
            self._run_a_while()
            machine.expect_running()
        self.figures["kills"] += 1


class CreationCampaign:
    """Images of a machine that makes one pool after another: what is left is refused or whole."""

    def __init__(self, lab, variant, image_count, on_progress):
        self._lab = lab
        self._variant = variant
        self._image_count = image_count
        self._on_progress = on_progress
        self.figures = {"variant": variant.name, "images": 0, "absent": 0, "whole": 0,
                        "refused": 0}

    def run(self):
        medium = self._lab.fresh_medium(self._variant, "creation.medium")
        witness = self._lab.fresh_witness("creation.witness", 10)
        hardware = self._lab.hardware(self._variant)
        with Machine(self._lab.system, hardware, "create", [medium], [witness]) as machine:
            machine.wait_for("running")
            for count in batches(self._image_count):
                cuts = []
                for number in range(count):
                    machine.go()
                    time.sleep(self._lab.random.uniform(0.02, 0.3))
                    machine.stop()
                    cuts.append(Cut(self._lab, f"creation.{number}", medium, witness))
                self._audit(hardware, cuts)
                self._on_progress(count)
        os.unlink(medium)
        os.unlink(witness)

    def _audit(self, hardware, cuts):
        with Machine(self._lab.system, hardware, "audit_created", [c.medium for c in cuts],
                     [c.witness for c in cuts]) as machine:
            for cut in cuts:
                _, opened, made, text = fields(machine.wait_for("audited"), 4)
                kind = {"absent": "absent", "0": "whole", "2": "refused"}.get(opened)
                if kind is None or made != "0" or (kind == "refused" and "flugs: " not in text):
                    raise CheckFailed(f"{cut.medium}: opening what was left of a creation ended "
                                      f"with {opened} ({text}), making a new pool with {made}")
                self.figures[kind] += 1
                self.figures["images"] += 1
            machine.wait_until_off()
        for cut in cuts:
            cut.remove()
