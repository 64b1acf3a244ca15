"""The book's source files, and a copy of them to work in."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

#: Not walked when the checkout is no git repository.
_OUTSIDE = {"_build", "__pycache__", "node_modules"}


def source_files(root):
    """Return the files of the book below `root`, relative to it.

    These are the files that git tracks or would track; without a repository, all
    but hidden ones and build results.
    """
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        names = {Path(name) for name in listed.split("\0") if name}
        return sorted(name for name in names if (root / name).is_file())
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in _OUTSIDE and s[0] != "."]
        found += [Path(folder, name).relative_to(root) for name in names]
    return sorted(found)


def copy_sources(root, target):
    """Make `target` a copy of the book below `root`, and of nothing else."""
    shutil.rmtree(target, ignore_errors=True)
    for name in source_files(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)


def state(root):
    """Return what git says of the checkout: `{file: digest of its content}`.

    Only files that differ from the last commit are listed; `None` without git.
    """
    status = _git(root, "status", "--porcelain=v1", "-z", "--no-renames")
    if status is None:
        return None
    changed = {}
    for entry in filter(None, status.split("\0")):
        file = Path(root, entry[3:])
        content = file.read_bytes() if file.is_file() else b""
        changed[entry[3:]] = entry[:2] + hashlib.sha256(content).hexdigest()
    return changed


def differences(before, after):
    """Return the files whose `state` is not the same, sorted."""
    if before is None or after is None:
        return []
    return sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )


def _git(root, *arguments):
    command = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
    try:
        result = subprocess.run(
            [*command, *arguments], check=False, capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    return result.stdout if result.returncode == 0 else None
