"""A disk with a volatile cache, and what a power cut leaves of it.

A write goes to the cache. A flush makes durable every write that was complete when the flush
arrived, and no other. A write with FUA is durable when it is complete. Until then a power cut may
leave any sector of a write on the medium or not, whatever it leaves of the others: a sector is the
unit that does not tear.
"""

import collections
import os
import threading

from dax_vm import images
from disk_vm import cuts

FLUSHES_REMEMBERED = 8


class Version:
    """What one write put into one sector."""

    __slots__ = ("request", "data")

    def __init__(self, request, data):
        self.request = request
        self.data = data


class Remains:
    """What a cut has left of the sectors that were not durable."""

    def __init__(self, kind, sectors, sectors_left):
        self.kind = kind  # of cuts.KINDS
        self.sectors = sectors
        self.sectors_left = sectors_left


class Disk:
    """The durable content is a file; the versions of sectors that are not durable are in memory.
    `untorn` is a range of bytes that no cut tears: every write has all of them or none.

    Thread-safety: any thread.
    """

    def __init__(self, path, sector_bytes=512, untorn=range(0)):
        self.path = path
        self.sector_bytes = sector_bytes
        self._untorn = {at // sector_bytes for at in untorn}
        self.size = os.path.getsize(path)
        self._file = os.open(path, os.O_RDWR)
        self._lock = threading.Lock()
        self._sectors = {}  # number of a sector: its versions, oldest first
        self._requests = 0
        self._incomplete = set()  # writes that nobody was told to be done
        self._undo = collections.deque(maxlen=FLUSHES_REMEMBERED)

    def close(self):
        os.close(self._file)

    def read(self, offset, count):
        with self._lock:
            data = bytearray(os.pread(self._file, count, offset))
            for sector in self._volatile_in(offset, count):
                at = sector * self.sector_bytes - offset
                data[at:at + self.sector_bytes] = self._sectors[sector][-1].data
        return data

    def write(self, offset, data):
        """The number of the write. It is not complete before `complete` has been called."""
        with self._lock:
            self._requests += 1
            self._incomplete.add(self._requests)
            for at in range(0, len(data), self.sector_bytes):
                version = Version(self._requests, data[at:at + self.sector_bytes])
                self._sectors.setdefault((offset + at) // self.sector_bytes, []).append(version)
            return self._requests

    def complete(self, request):
        with self._lock:
            self._incomplete.discard(request)

    def persist(self, request, offset, count):
        """A write with FUA, before it is complete."""
        with self._lock:
            self._make_durable(self._volatile_in(offset, count),
                               lambda version: version.request <= request)

    def begin_flush(self):
        """What the flush that has arrived now must make durable."""
        with self._lock:
            return self._requests, frozenset(self._incomplete)

    def end_flush(self, covered):
        last, incomplete = covered
        with self._lock:
            self._make_durable(list(self._sectors), lambda version: version.request <= last
                               and version.request not in incomplete)

    def cut(self, random, path, kind=None):
        """Copies to a file what a power cut now may leave, by a kind of cut or by any."""
        with self._lock:
            images.copy(self.path, path)
            return self._write_remains(random, path, kind)

    def lose_power(self, random):
        """The same with the disk itself."""
        with self._lock:
            remains = self._write_remains(random, self.path, None)
            self._sectors.clear()
            self._incomplete.clear()
            self._undo.clear()
            return remains

    def cut_without_flushes(self, count, path):
        """A disk that has lied: of the last flushes that had something to do, up to `count` have
        done nothing. The number of these flushes."""
        with self._lock:
            images.copy(self.path, path)
            count = min(count, len(self._undo))
            with open(path, "r+b") as file:
                for flush in list(self._undo)[::-1][:count]:
                    for offset, data in flush:
                        os.pwrite(file.fileno(), data, offset)
            return count

    def _volatile_in(self, offset, count):
        first, end = offset // self.sector_bytes, (offset + count) // self.sector_bytes
        return [sector for sector in range(first, end) if sector in self._sectors]

    def _make_durable(self, sectors, is_covered):
        """The newest covered version of each sector; older ones can no longer come."""
        chosen = {}
        for sector in sectors:
            versions = self._sectors[sector]
            for index in range(len(versions) - 1, -1, -1):
                if is_covered(versions[index]):
                    chosen[sector] = versions[index].data
                    if index + 1 < len(versions):
                        self._sectors[sector] = versions[index + 1:]
                    else:
                        del self._sectors[sector]
                    break
        undo = []
        for offset, data in self._runs(chosen):
            undo.append((offset, os.pread(self._file, len(data), offset)))
            os.pwrite(self._file, data, offset)
        if undo:
            self._undo.append(undo)

    def _write_remains(self, random, path, kind):
        requests = {version.request for versions in self._sectors.values() for version in versions}
        kind, choose = cuts.draw(random, sorted(requests), kind)
        versions = {sector: choose(self._sectors[sector]) for sector in sorted(self._sectors)}
        self._mend(versions)
        left = {sector: version.data for sector, version in versions.items() if version}
        with open(path, "r+b") as file:
            for offset, data in self._runs(left):
                os.pwrite(file.fileno(), data, offset)
        return Remains(kind, len(self._sectors), len(left))

    def _mend(self, versions):
        """Gives the sectors that belong together the versions of one write."""
        together = sorted(self._untorn & versions.keys())
        for sector in together[1:]:
            request = versions[together[0]] and versions[together[0]].request
            same = [v for v in self._sectors[sector] if v.request == request]
            versions[sector] = same[0] if same else None

    def _runs(self, sectors):
        """(offset, bytes) of neighbours joined, of a dictionary from number to content."""
        found = []
        for number in sorted(sectors):
            if found and found[-1][0] + len(found[-1][1]) == number:
                found[-1][1].append(sectors[number])
            else:
                found.append((number, [sectors[number]]))
        return [(number * self.sector_bytes, b"".join(parts)) for number, parts in found]
