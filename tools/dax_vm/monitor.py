"""QEMU's monitor: a machine's state becomes a file, and another machine goes on from there."""

import json
import shlex
import socket
import time

from dax_vm.common import CheckFailed

SLOWEST_ANSWER_S = 120


class Monitor:
    """A connection to the monitor of a QEMU that is started with `arguments` and `pass_fds`."""

    def __init__(self):
        self._ours, self._theirs = socket.socketpair()
        self._ours.settimeout(SLOWEST_ANSWER_S)
        self._stream = self._ours.makefile(encoding="utf-8")
        number = self._theirs.fileno()
        self.pass_fds = (number,)
        self.arguments = ["-chardev", f"socket,id=monitor,fd={number}",
                          "-mon", "chardev=monitor,mode=control"]

    def began(self):
        """QEMU has its end of the connection."""
        self._theirs.close()

    def close(self):
        self._theirs.close()
        self._stream.close()
        self._ours.close()

    def save(self, path):
        """Stops the machine and writes its state to a file."""
        self._say("qmp_capabilities")
        self._say("stop")
        self._say("migrate", uri=f"exec:cat >{shlex.quote(path)}")
        self._wait_until("completed")

    def load(self, path):
        """What was saved is in this machine, which was started with `-S -incoming defer`. It runs
        after `go`."""
        self._say("qmp_capabilities")
        self._say("migrate-incoming", uri=f"exec:cat {shlex.quote(path)}")
        self._wait_until("completed")

    def go(self):
        self._say("cont")

    def _wait_until(self, wanted):
        end = time.monotonic() + SLOWEST_ANSWER_S
        while time.monotonic() < end:
            status = self._say("query-migrate").get("status")
            if status == wanted:
                return
            if status in ("failed", "cancelled"):
                break
            time.sleep(0.01)
        raise CheckFailed(f"a machine's state is not saved or loaded: {status}")

    def _say(self, command, **arguments):
        """What QEMU answers; events are passed over."""
        try:
            self._ours.sendall(
                json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
            for line in self._stream:
                message = json.loads(line)
                if "error" in message:
                    raise CheckFailed(f"QEMU refuses {command}: {message['error']}")
                if "return" in message:
                    return message["return"]
        except OSError as error:
            raise CheckFailed(f"QEMU's monitor at {command}: {error}") from None
        raise CheckFailed(f"QEMU's monitor ended at {command}")
