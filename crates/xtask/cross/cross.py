#!/usr/bin/env python3
"""A Rust compiler for Windows and macOS on Debian, and Wine, which runs the programs for Windows.

usage: cross.py --install                  install whatever is missing
       cross.py --run PROGRAM [ARGUMENT...]   run a program for Windows under Wine
       cross.py --dir                      print the folder of the compiler

The compiler comes with the sources of the standard library, which cargo builds for each target. Its packages
are unpacked into a folder and not installed, so the compiler of this machine stays the one that it is.

Environment:
    CROSS_DIR    that folder (default acpd-cross in the cache folder of the user)
    WINEPREFIX   the Windows of the programs (default $CROSS_DIR/wine)
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
DIR = Path(os.environ.get("CROSS_DIR") or Path(CACHE, "acpd-cross")).absolute()
ROOT = DIR / "root"
# Made last: whatever is older is whole.
READY = DIR / "ready"
LIBRARY = DIR / "bcryptprimitives.dll"
GCC = "x86_64-w64-mingw32-gcc"
PROGRAMS = {GCC: ["gcc-mingw-w64-x86-64-win32"], "wine": ["wine", "wine64"]}


def apt(*words, **options):
    subprocess.run(["apt-get", "-qq", *words], check=True, stdout=subprocess.DEVNULL, **options)


def find(pattern, *words):
    """The first match in what apt-cache prints."""
    text = subprocess.run(["apt-cache", *words], check=True, capture_output=True, text=True).stdout
    found = re.search(pattern, text)
    return found[1] if found else sys.exit(f"cross.py: `apt-cache {' '.join(words)}` has no {pattern}")


def install():
    if not shutil.which("apt-get"):
        sys.exit("cross.py: the compiler comes as packages of Debian, and there is no apt-get")
    missing = [package for program in PROGRAMS if not shutil.which(program) for package in PROGRAMS[program]]
    if missing or not READY.exists():
        apt("update")
    if missing:
        apt("install", "--yes", "--no-install-recommends", *missing)
    if not READY.exists():
        unpack_compiler()
        source = Path(__file__).with_name("bcryptprimitives.c")
        subprocess.run([GCC, "-shared", "-o", LIBRARY, source, "-ladvapi32"], check=True)
        READY.touch()


def unpack_compiler():
    """Puts Debian's compiler into ROOT, and a script beside it that starts it there."""
    packages = DIR / "debs"
    packages.mkdir(parents=True, exist_ok=True)
    version = find(r"Candidate: (\d+\.\d+)", "policy", "rustc-web")
    standard = f"libstd-rust-web-{version}"
    llvm = find(r"Depends: (libllvm\d+)", "depends", standard)
    apt("download", "rustc-web", "libstd-rust-web-dev", standard, "rust-web-src", llvm, cwd=packages)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, ROOT], check=True)
    shutil.rmtree(packages)
    # Cargo looks for the sources there.
    sources = ROOT / "usr/lib/rustlib/src"
    sources.mkdir(parents=True, exist_ok=True)
    (sources / "rust").unlink(missing_ok=True)
    (sources / "rust").symlink_to(next(ROOT.glob("usr/src/rustc-*")))
    compiler = DIR / "rustc"
    libraries = f"{ROOT}/usr/lib/x86_64-linux-gnu:{ROOT}/usr/lib"
    compiler.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {ROOT}/usr/bin/rustc "$@"\n')
    compiler.chmod(0o755)
    subprocess.run([compiler, "--version"], check=True)


def run(program, *words):
    """Becomes a program under Wine, with the library beside it that Wine does not have."""
    beside = Path(program).with_name(LIBRARY.name)
    if not beside.exists():
        # Tests start several programs at once: none may find half of it.
        part = beside.with_name(f"{beside.name}.{os.getpid()}")
        shutil.copyfile(LIBRARY, part)
        part.rename(beside)
    wine = {"WINEPREFIX": f"{DIR}/wine", "WINEDEBUG": "-all"}
    os.execvpe("wine", ["wine", program, *words], {**wine, **os.environ})


match sys.argv[1:]:
    case ["--install"]:
        install()
    case ["--run", program, *words]:
        if not READY.exists():
            sys.exit(f"cross.py: nothing is installed in {DIR}: run `{__file__} --install`")
        run(program, *words)
    case ["--dir"]:
        print(DIR)
    case _:
        sys.exit(__doc__)
