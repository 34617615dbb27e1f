"""What the parts of tools/dax-vm share: their errors, and how they find programs."""

import os
import shutil


class CannotRun(Exception):
    """Something is missing that nothing here can provide: a package, a kernel, space."""


class CheckFailed(Exception):
    """The guest, or flugs in it, did what it must not."""


def program(name):
    """The path of a program of this machine, one of root's perhaps."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise CannotRun(f"{name} is missing: tools/setup --machines installs it")
    return path
