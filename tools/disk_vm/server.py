"""Serves a disk to a virtual machine: the NBD protocol, as much of it as QEMU uses.

The server is the device. It answers requests out of order and late, as a device may, and can stop
at any request as if the power had gone.
"""

import heapq
import os
import random as random_numbers
import select
import socket
import struct
import threading
import time

from dax_vm.common import CheckFailed

INIT_MAGIC, OPTION_MAGIC = 0x4e42444d41474943, 0x49484156454f5054
OPTION_REPLY_MAGIC = 0x3e889045565a9
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
OPTION_ABORT, OPTION_GO = 2, 7
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, 0x80000001
INFO_EXPORT = 0
COMMAND_READ, COMMAND_WRITE, COMMAND_DISCONNECT, COMMAND_FLUSH = 0, 1, 2, 3
COMMAND_FUA = 1
EINVAL = 22
REQUEST_BYTES_MAX = 32 << 20
SLOWEST_REQUESTS_S = 120


class Pace:
    """How long the device takes: drawn for each write and flush, evenly up to these seconds."""

    def __init__(self, write_s_max, flush_s_max):
        self.write_s_max = write_s_max
        self.flush_s_max = flush_s_max


class Gone(Exception):
    """The machine has closed its connection."""


class DiskServer:
    """A thread that serves one machine at a time until `close`."""

    def __init__(self, disk, path, seed):
        self.path = path  # of the socket
        self.disk = disk
        self.pace = Pace(0, 0)
        self.frozen = threading.Event()
        self.writes = 0
        self.flushes = 0
        self._freeze_at = None  # count of writes and flushes
        self._random = random_numbers.Random(seed)
        self._due = []  # heap of (time, number, action)
        self._number = 0
        self._failure = None
        self._is_closing = False
        self._is_machine_dead = False
        self._awakened, self._awakener = os.pipe()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._connection = None
        self._idle = threading.Event()  # no machine is connected
        self._idle.set()
        self._thread = threading.Thread(target=self._serve_all, daemon=True)
        self._thread.start()

    def close(self):
        self._is_closing = True
        self._wake()
        self._thread.join()
        os.close(self._awakener)
        os.close(self._awakened)
        self._listener.close()
        os.unlink(self.path)

    def freeze_after(self, requests):
        """The disk takes so many more writes and flushes. It answers none from the last of them
        on, and does nothing more."""
        self._freeze_at = self.writes + self.flushes + requests

    def wait_until_frozen(self):
        if not self.frozen.wait(SLOWEST_REQUESTS_S):
            raise CheckFailed("the disk gets no more requests")

    def thaw(self):
        self._freeze_at = None
        self.frozen.clear()
        self._wake()

    def wait_until_idle(self):
        """After the death of a machine: nothing that it sent changes the disk any more."""
        self._is_machine_dead = True
        self._wake()
        if not self._idle.wait(SLOWEST_REQUESTS_S):
            raise CheckFailed("the disk's connection does not end with its machine")
        self._is_machine_dead = False
        self._freeze_at = None
        self.frozen.clear()
        if self._failure:
            raise CheckFailed(f"the disk's server failed: {self._failure!r}")

    def _wake(self):
        os.write(self._awakener, b"w")

    def _serve_all(self):
        while not self._is_closing:
            ready = self._wait_for(self._listener)
            if not ready:
                continue
            self._idle.clear()
            self._connection, _ = self._listener.accept()
            try:
                self._negotiate()
                self._serve()
            except (Gone, ConnectionError):
                pass
            except Exception as failure:  # pylint: disable=broad-except  # told to the campaign
                self._failure = failure
            finally:
                self._due.clear()
                self._connection.close()
                self._idle.set()

    def _wait_for(self, source, seconds=None):
        """Whether it can be read; `source` may be None. Ends early when somebody wakes us."""
        sources = [self._awakened] + ([source] if source else [])
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._awakened in ready:
            os.read(self._awakened, 100)
        return source in ready

    def _negotiate(self):
        flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA
        self._send(struct.pack(">QQH", INIT_MAGIC, OPTION_MAGIC, FIXED_NEWSTYLE | NO_ZEROES))
        self._receive(4)
        while True:
            _, option, count = struct.unpack(">QII", self._receive(16))
            self._receive(count)
            if option == OPTION_GO:
                export = struct.pack(">HQH", INFO_EXPORT, self.disk.size, flags)
                self._answer_option(option, REPLY_INFO, export)
                self._answer_option(option, REPLY_ACK)
                return
            if option == OPTION_ABORT:
                raise Gone
            self._answer_option(option, REPLY_UNSUPPORTED)

    def _answer_option(self, option, reply, data=b""):
        self._send(struct.pack(">QIII", OPTION_REPLY_MAGIC, option, reply, len(data)) + data)

    def _serve(self):
        while not self._is_closing:
            if self.frozen.is_set():
                if self._is_machine_dead:
                    return
                self._wait_for(None)
                continue
            if self._wait_for(self._connection, self._do_due()):
                self._take_request()

    def _do_due(self):
        """Does what is due. The seconds until something else is."""
        while self._due:
            seconds = self._due[0][0] - time.monotonic()
            if seconds > 0:
                return seconds
            heapq.heappop(self._due)[2]()
        return None

    def _take_request(self):
        magic, flags, command, handle, offset, count = struct.unpack(">IHHQQI", self._receive(28))
        if magic != REQUEST_MAGIC or (command == COMMAND_WRITE and count > REQUEST_BYTES_MAX):
            raise ValueError(f"request {magic:#x} {command} of {count} bytes")
        if command == COMMAND_READ:
            self._reply(handle, data=self.disk.read(offset, count))
        elif command == COMMAND_WRITE:
            self._take_write(handle, offset, self._receive(count), flags & COMMAND_FUA)
        elif command == COMMAND_FLUSH:
            self._take_flush(handle)
        elif command == COMMAND_DISCONNECT:
            raise Gone
        else:
            self._reply(handle, EINVAL)

    def _take_write(self, handle, offset, data, is_durable):
        self.writes += 1
        request = self.disk.write(offset, data)

        def end():
            if is_durable:
                self.disk.persist(request, offset, len(data))
            self.disk.complete(request)
            self._reply(handle)
        self._do_later(self.pace.write_s_max, end)

    def _take_flush(self, handle):
        self.flushes += 1
        covered = self.disk.begin_flush()

        def end():
            self.disk.end_flush(covered)
            self._reply(handle)
        self._do_later(self.pace.flush_s_max, end)

    def _do_later(self, seconds_max, action):
        """Or never, when the disk freezes at this request."""
        if self._freeze_at is not None and self.writes + self.flushes >= self._freeze_at:
            self.frozen.set()
        elif seconds_max == 0:
            action()
            return
        self._number += 1
        due = time.monotonic() + self._random.uniform(0, seconds_max)
        heapq.heappush(self._due, (due, self._number, action))

    def _reply(self, handle, error=0, data=b""):
        self._send(struct.pack(">IIQ", REPLY_MAGIC, error, handle) + data)

    def _send(self, data):
        self._connection.sendall(data)

    def _receive(self, count):
        data = bytearray()
        while len(data) < count:
            part = self._connection.recv(count - len(data))
            if not part:
                raise Gone
            data += part
        return bytes(data)
