"""Packages of PyPI for the scripts in tools/ that run other engines for comparison."""

import importlib
import os
import subprocess
import sys
import venv


def import_packages(tool, packages):
    """The modules of those names. Where python3 lacks one, the script starts again in a virtual
    environment in .cache/TOOL, which gets them the first time."""
    try:
        return [importlib.import_module(name) for name in packages]
    except ImportError:
        pass
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    home = os.path.join(root, ".cache", tool)
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
