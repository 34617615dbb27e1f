"""What a power cut leaves of the writes that are not durable.

A kind of cut is a function of a source of random numbers and the numbers of these writes, in the
order of their arrival. It gives a function that chooses one of the versions of a sector, oldest
first, or None: the sector keeps its durable content.
"""


def nothing(_random, _requests):
    return lambda versions: None


def everything(_random, _requests):
    return lambda versions: versions[-1]


def whole_writes(random, requests):
    """Each write is on the medium with all of its sectors, or with none."""
    return newest_of({request for request in requests if random.random() < 0.5})


def first_writes(random, requests):
    """The writes reached the medium in order, and the last of them is torn."""
    last = random.choice(requests)
    with_last = newest_of({request for request in requests if request <= last})
    without_last = newest_of({request for request in requests if request < last})

    def choose(versions):
        return (with_last if random.random() < 0.5 else without_last)(versions)
    return choose


def one_lost(random, requests):
    lost = random.choice(requests)
    return newest_of(set(requests) - {lost})


def sectors(share):
    """Each sector by itself, in any of its versions."""
    def draw_sectors(random, _requests):
        return lambda versions: random.choice(versions) if random.random() < share else None
    return draw_sectors


def newest_of(requests):
    def choose(versions):
        for version in reversed(versions):
            if version.request in requests:
                return version
        return None
    return choose


KINDS = {
    "nothing": nothing,
    "everything": everything,
    "whole writes": whole_writes,
    "first writes": first_writes,
    "all but one write": one_lost,
    "half of the sectors": sectors(0.5),
    "few sectors": sectors(0.1),
    "most sectors": sectors(0.9),
}


def draw(random, requests, kind=None):
    """The name of a kind of cut, drawn if none is given, and its function that chooses a
    version."""
    if not requests:
        return "nothing", nothing(random, requests)
    kind = kind or random.choice(list(KINDS))
    return kind, KINDS[kind](random, requests)
