#!/usr/bin/env python3
"""The disk of tools/disk-vm without a machine: what is durable when, and what a cut may leave."""

import os
import random
import shutil
import socket
import struct
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from disk_vm import cuts, server  # noqa: E402
from disk_vm.disk import Disk  # noqa: E402

SECTOR = 512
SECTORS = 16


def sectors(letters):
    """A sector full of each letter."""
    return b"".join(letter.encode() * SECTOR for letter in letters)


def letters_of(data):
    """Of each sector; a torn sector fails."""
    found = ""
    for at in range(0, len(data), SECTOR):
        values = set(data[at:at + SECTOR])
        assert len(values) == 1, values
        found += chr(values.pop()).replace("\0", ".")
    return found


class WithDisk(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        path = os.path.join(self.directory, "disk")
        with open(path, "wb") as file:
            file.truncate(SECTORS * SECTOR)
        self.disk = Disk(path)
        self.addCleanup(self.disk.close)
        self.random = random.Random(1)

    def write(self, sector, letters, completes=True):
        request = self.disk.write(sector * SECTOR, sectors(letters))
        if completes:
            self.disk.complete(request)
        return request

    def flush(self):
        self.disk.end_flush(self.disk.begin_flush())

    def cut(self, kind=None, count=4):
        path = os.path.join(self.directory, "cut")
        self.disk.cut(self.random, path, kind)
        with open(path, "rb") as file:
            return letters_of(file.read(count * SECTOR))

    def cuts(self, kind, rounds=200):
        return {self.cut(kind) for _ in range(rounds)}


class DiskTest(WithDisk):
    def test_what_is_written_is_read(self):
        self.write(1, "ab")
        self.write(2, "c")
        self.assertEqual(letters_of(self.disk.read(0, 4 * SECTOR)), ".ac.")
        self.flush()
        self.assertEqual(letters_of(self.disk.read(SECTOR, 2 * SECTOR)), "ac")

    def test_a_flush_covers_what_was_complete_when_it_arrived(self):
        self.write(0, "a")
        slow = self.write(1, "b", completes=False)
        covered = self.disk.begin_flush()
        self.write(2, "c")
        self.disk.complete(slow)
        self.assertEqual(self.cut("nothing"), "....")
        self.disk.end_flush(covered)
        self.assertEqual(self.cut("nothing"), "a...")
        self.assertEqual(self.cut("everything"), "abc.")
        self.flush()
        self.assertEqual(self.cut("nothing"), "abc.")

    def test_a_newer_write_stays_volatile(self):
        self.write(0, "a")
        covered = self.disk.begin_flush()
        self.write(0, "b")
        self.disk.end_flush(covered)
        self.assertEqual(self.cuts("half of the sectors"), {"a...", "b..."})

    def test_a_write_with_fua_is_durable_by_itself(self):
        self.write(0, "aa")
        request = self.disk.write(SECTOR, sectors("b"))
        self.assertEqual(self.cut("nothing"), "....")
        self.disk.persist(request, SECTOR, SECTOR)
        self.disk.complete(request)
        self.assertEqual(self.cut("nothing"), ".b..")
        self.assertEqual(self.cuts("half of the sectors"), {".b..", "ab.."})

    def test_every_kind_of_cut_leaves_what_it_says(self):
        self.write(0, "ab")
        self.write(1, "cd")
        self.write(3, "e")
        self.assertEqual(self.cuts("nothing"), {"...."})
        self.assertEqual(self.cuts("everything"), {"acde"})
        self.assertEqual(self.cuts("whole writes"),
                         {first for first in ("....", "ab..", ".cd.", "acd.", "...e", "ab.e",
                                              ".cde", "acde")})
        self.assertEqual(self.cuts("all but one write"), {".cde", "ab.e", "acd."})
        self.assertEqual(self.cuts("first writes"),
                         {"....", "a...", ".b..", "ab..", "ac..", "abd.", "acd.", "acde"})
        everything = {a + b + c + d for a in ".a" for b in ".bc" for c in ".d" for d in ".e"}
        self.assertEqual(self.cuts("half of the sectors", 2000), everything)
        for kind in cuts.KINDS:
            self.assertLessEqual(self.cuts(kind), everything)

    def test_what_must_not_tear_does_not(self):
        self.disk = Disk(self.disk.path, SECTOR, range(SECTOR, 3 * SECTOR))
        self.addCleanup(self.disk.close)
        self.write(0, "abcd")
        self.write(1, "ef")
        self.assertEqual(self.cuts("half of the sectors", 500),
                         {a + b + d for a in ".a" for b in ("..", "bc", "ef") for d in ".d"})

    def test_a_disk_goes_on_with_what_a_cut_leaves(self):
        self.write(0, "a")
        self.flush()
        self.write(0, "bb")
        self.disk.lose_power(self.random)
        left = letters_of(self.disk.read(0, 2 * SECTOR))
        self.assertEqual(self.cut("everything", 2), left)
        self.assertEqual(self.cut("nothing", 2), left)

    def test_a_lie_takes_back_the_last_flushes(self):
        path = os.path.join(self.directory, "lie")
        for letter in "abc":
            self.write(0, letter)
            self.flush()
            self.flush()
        for wanted, count, left in ((1, 1, "b"), (2, 2, "a"), (9, 3, ".")):
            self.assertEqual(self.disk.cut_without_flushes(wanted, path), count)
            with open(path, "rb") as file:
                self.assertEqual(letters_of(file.read(SECTOR)), left)


class ServerTest(WithDisk):
    """As a machine sees the disk."""

    def setUp(self):
        super().setUp()
        self.server = server.DiskServer(self.disk, os.path.join(self.directory, "socket"), 1)
        self.addCleanup(self.server.close)
        self.connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.connection.close)
        self.connection.settimeout(20)
        self.connection.connect(self.server.path)
        self.receive(18)
        self.connection.sendall(struct.pack(">I", 3))
        self.connection.sendall(struct.pack(">QIIIH", server.OPTION_MAGIC, server.OPTION_GO, 6, 0,
                                            0))
        answer = self.receive(20 + 12)
        self.assertEqual(struct.unpack(">HQH", answer[20:])[1], SECTORS * SECTOR)
        self.receive(20)

    def receive(self, count):
        data = b""
        while len(data) < count:
            data += self.connection.recv(count - len(data))
        return data

    def send(self, handle, command, sector=0, data=b"", count=None, flags=0):
        self.connection.sendall(struct.pack(
            ">IHHQQI", server.REQUEST_MAGIC, flags, command, handle, sector * SECTOR,
            len(data) if count is None else count) + data)

    def expect_reply(self, *handles):
        found = {struct.unpack(">IIQ", self.receive(16))[1:] for _ in handles}
        self.assertEqual(found, {(0, handle) for handle in handles})

    def test_requests_are_answered(self):
        self.send(1, server.COMMAND_WRITE, 1, sectors("ab"))
        self.expect_reply(1)
        self.send(2, server.COMMAND_READ, 0, count=4 * SECTOR)
        self.expect_reply(2)
        self.assertEqual(letters_of(self.receive(4 * SECTOR)), ".ab.")
        self.assertEqual(self.cut("nothing"), "....")
        self.send(3, server.COMMAND_FLUSH)
        self.expect_reply(3)
        self.assertEqual(self.cut("nothing"), ".ab.")
        self.send(4, server.COMMAND_WRITE, 0, sectors("c"), flags=server.COMMAND_FUA)
        self.expect_reply(4)
        self.assertEqual(self.cut("nothing"), "cab.")

    def test_slow_requests_are_answered_all(self):
        self.server.pace = server.Pace(0.01, 0.02)
        for handle in range(10):
            self.send(handle, server.COMMAND_WRITE, handle, sectors("a"))
        self.send(10, server.COMMAND_FLUSH)
        self.expect_reply(*range(11))

    def test_a_frozen_disk_answers_when_it_has_thawed(self):
        self.server.freeze_after(2)
        self.send(1, server.COMMAND_WRITE, 0, sectors("a"))
        self.expect_reply(1)
        self.send(2, server.COMMAND_FLUSH)
        self.server.wait_until_frozen()
        self.send(3, server.COMMAND_WRITE, 1, sectors("b"))
        self.assertEqual(self.cut("nothing"), "....")
        self.assertEqual(self.cut("everything"), "a...")
        self.server.thaw()
        self.expect_reply(2, 3)
        self.assertEqual(self.cut("nothing"), "a...")

    def test_the_death_of_a_machine_ends_a_frozen_disk(self):
        self.server.freeze_after(1)
        self.send(1, server.COMMAND_WRITE, 0, sectors("a"))
        self.server.wait_until_frozen()
        self.send(2, server.COMMAND_WRITE, 1, sectors("b"))
        self.connection.close()
        self.server.wait_until_idle()
        self.assertEqual(self.cut("everything"), "a...")


if __name__ == "__main__":
    unittest.main()
