"""CPython without the GIL, which tools/python compiles from Debian's source: no package has it in a
form that this system can load."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import pypi

HOME = os.path.join(pypi.CACHE, "free-threaded")
CPYTHON = os.path.join(HOME, "cpython")
INTERPRETER = os.path.join(CPYTHON, "bin", "python3.13t")
PYTHON = os.path.join(HOME, "python")  # a virtual environment
SUITE, SOURCE = "trixie", "python3.13"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CONFIGURE = ("--quiet", "--disable-gil", f"--prefix={CPYTHON}", "--without-ensurepip",
             "--without-static-libpython", "--disable-test-modules")
LAST_LINES = 30


def mirror():
    """The address from which the system gets its own packages."""
    with open("/etc/os-release", encoding="utf-8") as file:
        release = dict(line.strip().split("=", 1) for line in file if "=" in line)
    code_name = release.get("VERSION_CODENAME", "").strip('"')
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Identifier: Packages"],
        capture_output=True, text=True, check=True).stdout
    found = [line.split()[1] for line in listed.splitlines() if line.split()[0] == code_name]
    if release.get("ID") != "debian" or not found:
        raise OSError("the system has no mirror of Debian")
    return found[0]


def run(command, log, cwd):
    with open(log, "w", encoding="utf-8") as out:
        ended = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, check=False)
    if ended.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as out:
            print("".join(out.readlines()[-LAST_LINES:]), file=sys.stderr)
        raise OSError(f"{command[0]} failed")


def fetch_source(folder):
    """The source of CPython. apt checks its digest and Debian's signature. Its lists are in
    `folder`, so that those of the system stay as they are."""
    apt = os.path.join(folder, "apt")
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(apt, name))
    with open(os.path.join(apt, "status"), "w", encoding="utf-8"):
        pass
    with open(os.path.join(apt, "parts", "debian.sources"), "w", encoding="utf-8") as file:
        file.write(f"Types: deb-src\nURIs: {mirror()}\nSuites: {SUITE}\nComponents: main\n"
                   f"Signed-By: {KEYRING}\n")
    options = [f"-oDir::State={apt}", f"-oDir::State::status={apt}/status",
               f"-oDir::State::Lists={apt}/lists", f"-oDir::Cache={apt}/cache",
               "-oDir::Etc::SourceList=/dev/null", f"-oDir::Etc::SourceParts={apt}/parts",
               "-oAPT::Sandbox::User=root"]
    log = os.path.join(folder, "log")
    run(["apt-get", *options, "update", "--error-on=any"], log, folder)
    run(["apt-get", *options, "source", "--download-only", "--only-source", SOURCE], log, folder)
    source = os.path.join(folder, "source")
    os.makedirs(source)
    run(["tar", "-xf", glob.glob(os.path.join(folder, "*.orig.tar.xz"))[0],
         "--strip-components=1"], log, source)
    return source


def compile_cpython():
    """Without the profile that Debian's own packages are optimised by: that takes half an hour."""
    os.makedirs(HOME, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        source = fetch_source(folder)
        log = os.path.join(folder, "log")
        run(["./configure", *CONFIGURE], log, source)
        run(["make", f"-j{os.cpu_count()}"], log, source)
        run(["make", "altinstall", f"DESTDIR={folder}/root"], log, source)
        shutil.rmtree(CPYTHON, ignore_errors=True)
        os.rename(f"{folder}/root{CPYTHON}", CPYTHON)


def install(requirements):
    """False if it cannot be had."""
    installed = os.path.join(HOME, "requirements.txt")
    if os.path.exists(installed) and pypi.have_same_content(installed, requirements):
        return True
    if not os.path.exists(INTERPRETER):
        print(f"tools/python: compiling CPython without the GIL into {CPYTHON}", file=sys.stderr)
        try:
            compile_cpython()
        except (OSError, subprocess.CalledProcessError, IndexError) as error:
            print(f"tools/python: {error}", file=sys.stderr)
            return False
    if not pypi.install_wheels(PYTHON, requirements, INTERPRETER):
        return False
    shutil.copy(requirements, installed)
    return True
