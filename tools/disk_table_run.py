"""The measurements of tools/disk-table: which there are, and runs of them, one after another."""

import json
import mmap
import os
import signal
import statistics
import subprocess
import sys
import time

from disk_table import SOON_MS, SOON_USERS, SUSTAINED_USERS, USERS

BLOCK = 4096
DEVICE_WRITES = 200
LAST_LINES = 30
SPARE_SECONDS = 1800  # a run that takes so much longer than it measures hangs
COULD_NOT_RUN = 2


class Measurement:
    """One command of flugs, which writes `result` into the folder that it is given."""

    def __init__(self, name, arguments, result, seconds, once=False, environment=None):
        self.name = name
        self.arguments = arguments  # a function of the folder
        self.result = result
        self.seconds = seconds
        self.once = once
        self.environment = environment or {}  # of the command, beside ours

    def settings(self):
        """The environment as one writes it before a command."""
        return "".join(f"{name}={value} " for name, value in self.environment.items())


# A budget of a day, and a journal that is not half full before the run ends.
NO_CHECKPOINT = ("--restart-budget", "86400000", "--journal", "2048")


def rivals(options, users):
    def arguments(folder):
        return ["bench", "restart", "--figures", folder, "--only", "8b", "--plot", "none",
                "--subscribers", str(options.subscribers), "--users", str(users),
                "--seconds", str(options.seconds), "--peers", options.peers]
    return Measurement(f"rivals-{users}", arguments, "figure-8b.json", 20 * options.seconds)


def tatp(options, name, users, seconds, pool_folder=None, soon=True, once=False, more=(),
         environment=None):
    """With the pool in the measurement's folder on the disk, or elsewhere."""
    def arguments(folder):
        pool = os.path.join(pool_folder or folder, "pool")
        words = ["bench", "tatp", "--pool", pool, "--users", str(users),
                 "--subscribers", str(options.subscribers), "--seconds", str(seconds),
                 "--ramp-up", str(options.ramp_up), "--json", os.path.join(folder, "tatp.json")]
        return words + (["--durable-within", str(SOON_MS)] if soon else []) + list(more)
    return Measurement(name, arguments, "tatp.json", seconds, once, environment)


def processor_time(options):
    """UPDATE_LOCATION on a tmpfs without and with a journal, for which nobody waits."""
    mix = ("--mix", "update-location")
    return [tatp(options, "journal-cpu-tmpfs", 1, options.seconds, options.tmpfs, more=mix),
            tatp(options, "journal-cpu", 1, options.seconds, options.tmpfs, more=mix,
                 environment={"FLUGS_MEDIUM": "file"})]


def memory(options):
    def arguments(folder):
        return ["bench", "restart", "--figures", folder, "--only", "memory", "--plot", "none",
                "--memory", str(options.memory),
                "--subscribers", str(options.memory_subscribers),
                "--users", str(options.memory_users), "--seconds", str(options.seconds),
                "--peers", options.peers]
    return Measurement("memory", arguments, "memory.json", 40 * options.seconds)


def measurements(options):
    plan = [rivals(options, users) for users in USERS]
    for users in SOON_USERS:
        plan += [tatp(options, f"tatp-disk-soon-{users}", users, options.seconds),
                 tatp(options, f"tatp-tmpfs-soon-{users}", users, options.seconds, options.tmpfs)]
    return plan + [tatp(options, "tatp-disk-1", 1, options.seconds, soon=False),
                   tatp(options, "tatp-no-checkpoint", 1, options.seconds, soon=False,
                        more=NO_CHECKPOINT),
                   *processor_time(options),
                   memory(options),
                   tatp(options, "tatp-disk-sustained", SUSTAINED_USERS, options.sustained,
                        once=True)]


def without_samples(value):
    """A result without the samples of its curves, which only plots need."""
    if isinstance(value, dict):
        return {key: without_samples(part) for key, part in value.items()
                if key not in ("curve", "tps_by_second")}
    return [without_samples(part) for part in value] if isinstance(value, list) else value


def wrong_medium(result):
    """Why a result on the disk is none: empty if it is one."""
    media = {part["medium"] for part in result.get("curves") or result.get("runs") or [result]
             if part.get("key", "flugs").startswith("flugs")}
    return "" if media <= {"file"} else f"the medium was {', '.join(sorted(media))}, not file"


class Runner:
    """Runs measurements in folders of its own below `directory`."""

    def __init__(self, flugs, directory):
        self._flugs = flugs
        self._directory = directory

    def run(self, measurement, number):
        folder = os.path.join(self._directory, f"{measurement.name}-{number}")
        os.mkdir(folder)
        command = [self._flugs, *measurement.arguments(folder)]
        print(f"{measurement.name}, run {number}: {measurement.settings()}{' '.join(command)}",
              file=sys.stderr, flush=True)
        started = time.monotonic()
        log = os.path.join(folder, "log")
        status = self._execute(command, log, measurement.seconds + SPARE_SECONDS,
                               {**os.environ, **measurement.environment})
        result = self._result(os.path.join(folder, measurement.result))
        why = self._why(status, result, log)
        if result and not why and "tmpfs" not in measurement.name:
            why = wrong_medium(result)
            result = None if why else result
        return {"run": number, "command": command, "exit_status": status, "why": why,
                "seconds": round(time.monotonic() - started, 1), "result": result}

    @staticmethod
    def _execute(command, log, seconds, environment):
        """The exit status. What the command has started dies with it."""
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       env=environment)
            try:
                return process.wait(seconds)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    file.write(f"flugs: did not end within {seconds:.0f} s\n")
                    return COULD_NOT_RUN
                raise

    @staticmethod
    def _result(path):
        try:
            with open(path, encoding="utf-8") as file:
                return without_samples(json.load(file))
        except (OSError, ValueError):
            return None

    @staticmethod
    def _why(status, result, log):
        """Why there is no result, or none that is right."""
        if status == 0 and result:
            return ""
        if status == 0:
            return "it wrote no result"
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        print("\n".join(lines[-LAST_LINES:]), file=sys.stderr, flush=True)
        said = [line.removeprefix("flugs: ") for line in lines if line.startswith("flugs: ")]
        return f"status {status}: " + (said or lines or ["it said nothing"])[-1]


def device_latency(directory, when):
    """The median of synchronous writes of 4 KB, each to another place of a file."""
    path = os.path.join(directory, "device")
    try:
        with open(path, "wb") as file:
            file.write(bytes(DEVICE_WRITES * BLOCK))
            file.flush()
            os.fsync(file.fileno())
        with mmap.mmap(-1, BLOCK) as block:  # O_DIRECT wants whole pages
            block.write(os.urandom(BLOCK))
            device = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
            try:
                times = [timed_write(device, block, place * BLOCK)
                         for place in range(DEVICE_WRITES)]
            finally:
                os.close(device)
        return {"when": when, "median_us": statistics.median(times), "us": times}
    except OSError as error:
        return {"when": when, "why": str(error)}
    finally:
        if os.path.exists(path):
            os.unlink(path)


def timed_write(device, block, offset):
    started = time.monotonic_ns()
    if os.pwrite(device, block, offset) != len(block):
        raise OSError("a short write")
    return (time.monotonic_ns() - started) / 1000


def file_system_of(directory):
    """Its type and its device, as /proc/self/mountinfo has them."""
    device = os.stat(directory).st_dev
    key = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            words, _, rest = line.partition(" - ")
            if words.split()[2] == key:
                kind, source = rest.split()[:2]
                return kind, source
    return "unknown", key
