"""Packages of PyPI: virtual environments of files of requirements, and packages for the scripts in
tools/ that run other engines for comparison."""

import fcntl
import filecmp
import importlib
import os
import shutil
import subprocess
import sys
import venv

CACHE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".cache")


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0


def get_uv():
    """The installer uv, which takes an eighth of the time of pip: pip gets it once, into .cache/uv.
    None if it cannot be had."""
    home = os.path.join(CACHE, "uv")
    uv = os.path.join(home, "bin", "uv")
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "uv.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        if not os.path.exists(uv):
            venv.create(home, with_pip=True, clear=True)
            if not run(os.path.join(home, "bin", "python"), "-m", "pip", "install", "--quiet",
                       "uv==0.13.9"):
                return None
    return uv


def have_same_content(one, other):
    return filecmp.cmp(one, other, shallow=False)


def install_by_uv(uv, home, requirements, *options):
    # Certificates are those of the system, as pip has them: uv brings others of its own.
    return run(uv, "pip", "install", "--no-cache", "--no-config", "--system-certs", "--python",
               os.path.join(home, "bin", "python"), "--quiet", *options,
               "--requirement", requirements)


def install_wheels(home, requirements, interpreter):
    """A virtual environment of another interpreter with the packages of a file, of which each must
    have a wheel for it. False, and no environment, if these cannot be had."""
    uv = get_uv()
    if (uv is not None and run(interpreter, "-m", "venv", "--without-pip", "--clear", home) and
            install_by_uv(uv, home, requirements, "--only-binary", ":all:")):
        return True
    shutil.rmtree(home, ignore_errors=True)
    return False


def install_requirements(home, requirements):
    """A virtual environment with the packages of a file. False, and no environment, if these cannot
    be had."""
    uv = get_uv()
    python = os.path.join(home, "bin", "python")
    if uv is not None:
        venv.create(home, with_pip=False, clear=True)
        if install_by_uv(uv, home, requirements):
            return True
    venv.create(home, with_pip=True, clear=True)
    if run(python, "-m", "pip", "install", "--quiet", "--requirement", requirements):
        return True
    shutil.rmtree(home)
    return False


def import_packages(tool, packages):
    """The modules of those names. Where python3 lacks one, the script starts again in a virtual
    environment in .cache/TOOL, which gets them the first time."""
    try:
        return [importlib.import_module(name) for name in packages]
    except ImportError:
        pass
    home = os.path.join(CACHE, tool)
    python = os.path.join(home, "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(home):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True,
                       stdin=subprocess.DEVNULL)
        importlib.invalidate_caches()
        return [importlib.import_module(name) for name in packages]
    if not os.path.exists(python):
        print(f"tools/{tool}: installing {', '.join(packages)} into {home}", file=sys.stderr)
        venv.create(home, with_pip=True)
    os.execv(python, [python] + sys.argv)
