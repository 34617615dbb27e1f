"""What the parts of tools/dax-vm share: their errors."""


class CannotRun(Exception):
    """Something is missing that nothing here can provide: a package, a kernel, space."""


class CheckFailed(Exception):
    """The guest, or flugs in it, did what it must not."""
