#!/usr/bin/env python3
"""Pack a release: what a reader runs, from the last commit, and the PDF if it is there.

    make release     many-devices-VERSION.zip in _build

There is none while a chapter shows outputs of older code, or while a file that git
tracks differs from the last commit.
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import made_by
from notebooks import chapters

ROOT = Path(__file__).resolve().parents[1]
#: What `make book` and `make test` need is all that is tracked, but for these.
LEFT_OUT = (".binder", ".github", ".devcontainer", ".gitignore", ".gitattributes")
PDF = "_build/many_devices.pdf"


def version(root=ROOT):
    said = (root / "d2l_ext/__init__.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "(.+)"', said)[1]


def pack(folder, root=ROOT):
    """Write the zip into `folder`; return its path."""
    name = f"many-devices-{version(root)}"
    target = Path(folder) / f"{name}.zip"
    target.parent.mkdir(parents=True, exist_ok=True)
    leave = [f":(exclude){path}" for path in LEFT_OUT]
    subprocess.run(
        ["git", "archive", "--format=zip", f"--prefix={name}/", "-o", str(target),
         "HEAD", "--", ".", *leave],
        cwd=root, check=True,
    )
    if (root / PDF).is_file():
        with zipfile.ZipFile(target, "a") as packed:
            packed.write(root / PDF, f"{name}/{Path(PDF).name}")
    return target


def uncommitted(root=ROOT):
    """Return the tracked files that differ from the last commit, as git lists them."""
    command = ["git", "status", "--porcelain", "--untracked-files=no"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True,
                          text=True).stdout


def main():
    """Pack a release, and return the exit status."""
    if changes := uncommitted():
        print(f"A release holds the last commit, without these changes:\n{changes}"
              "Commit them, or take them back.", file=sys.stderr)
        return 1
    stale = made_by.stale(ROOT, chapters(ROOT))
    if stale:
        print(made_by.report(stale), file=sys.stderr)
        return 1
    made = pack(ROOT / "_build")
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
