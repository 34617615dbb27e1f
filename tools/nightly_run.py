"""Runs the steps of tools/nightly, remembers which of them have passed, and writes the results."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time

LAST_LINES = 30
CANNOT_RUN = 77


def write_json(path, content):
    """Whole or not at all: an interruption leaves the former one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    os.replace(path + ".new", path)


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Step:
    """One command. Its figures are found in the JSON that it writes, or in what it prints.

    `may_skip`: its exit status 77 says that it cannot run here."""

    def __init__(self, name, command, environment=None, figures=(), printed=None, programs=(),
                 may_skip=False):
        self.name = name
        self.command = command
        self.environment = environment or {}
        self.figures = figures  # names in its JSON; the command is given --json FILE
        self.printed = printed or {}  # name -> pattern, whose group 1 is added up
        self.programs = programs or command[:1]
        self.may_skip = may_skip

    def identity(self):
        """Of what is run: a step that passed with the same one need not run again."""
        words = [*self.command, *(f"{k}={v}" for k, v in sorted(self.environment.items())),
                 *(digest_of(program) for program in self.programs)]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()

    def figures_of(self, result, text):
        figures = {name: result[name] for name in self.figures if name in (result or {})}
        for name, pattern in self.printed.items():
            figures[name] = sum(int(number) for number in re.findall(pattern, text))
        return figures


class NightlyRun:
    def __init__(self, out, again):
        self._out = out
        self._again = again
        os.makedirs(out, exist_ok=True)

    def run_part(self, part, steps):
        path = os.path.join(self._out, f"{part.name}.json")
        former = {} if self._again else {
            step["identity"]: step for step in (read_json(path) or {}).get("steps", ())
            if step["ok"]}
        done = []
        for step in steps:
            known = former.get(step.identity())
            if known:
                print(f"{part.name} {step.name}: passed already, {known['finished']}", flush=True)
            done.append(known or self._run(part, step))
            # Steps that are still to come and passed earlier stay remembered.
            kept = [former[s.identity()] for s in steps[len(done):] if s.identity() in former]
            write_json(path, self._summary(part, done + kept, len(steps)))
        result = self._summary(part, done, len(steps))
        write_json(path, result)
        return result

    def skip_part(self, part):
        """What is known of it from earlier nights stays."""
        print(f"{part.name}: skipped, there is no {part.needs}", flush=True)
        return self._summary(part, [], 0)

    def _run(self, part, step):
        base = os.path.join(self._out, f"{part.name}-{step.name}")
        command = list(step.command)
        if step.figures:
            command += ["--json", base + ".result.json"]
            if os.path.exists(base + ".result.json"):
                os.unlink(base + ".result.json")
        print(f"{part.name} {step.name}: {' '.join(command)}", flush=True)
        started = time.monotonic()
        with open(base + ".log", "w", encoding="utf-8") as log:
            # Progress bars are for terminals.
            errors = None if sys.stderr.isatty() else subprocess.STDOUT
            status = subprocess.run(command, stdout=log, stderr=errors, check=False,
                                    stdin=subprocess.DEVNULL,
                                    env={**os.environ, **step.environment}).returncode
        with open(base + ".log", encoding="utf-8", errors="replace") as log:
            text = log.read()
        result = read_json(base + ".result.json") if step.figures else None
        is_good = status == 0 and (result is not None or not step.figures)
        is_skipped = step.may_skip and status == CANNOT_RUN
        if is_skipped:
            print(f"{part.name} {step.name}: skipped, {base}.log says why", flush=True)
        elif not is_good:
            print(f"{part.name} {step.name}: FAILED with {status}; the end of {base}.log:",
                  file=sys.stderr)
            print("\n".join(text.splitlines()[-LAST_LINES:]), file=sys.stderr, flush=True)
        return {"step": step.name, "ok": is_good, "skipped": is_skipped, "exit_status": status,
                "seconds": round(time.monotonic() - started, 1),
                "finished": time.strftime("%Y-%m-%d %H:%M:%S"), "command": command,
                "environment": step.environment, "identity": step.identity(),
                "figures": step.figures_of(result, text), "result": result}

    @staticmethod
    def _summary(part, done, steps_total):
        figures = {}
        for step in done:
            for name, value in step["figures"].items():
                figures[name] = figures.get(name, 0) + value
        return {"part": part.name, "what": part.what,
                "ok": len(done) == steps_total and all(step["ok"] or step.get("skipped")
                                                       for step in done),
                "skipped": all(step.get("skipped", False) for step in done),
                "seconds": round(sum(step["seconds"] for step in done), 1),
                "finished": max((step["finished"] for step in done), default=None),
                "steps_passed": sum(step["ok"] for step in done),
                "figures": figures, "steps": done}
