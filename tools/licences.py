"""Writes licences.md: the licence of every package that the locks install.

    tools/licences.py                                 from this environment
    tools/licences.py OTHER/lib/python3.9/site-packages …     and from others

A licence is what the package declares about itself.  Which packages there are
differs between the three Pythons and the two MXNets; a package that is in none of
the environments given keeps the line that it has.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("common", "cpu", "gpu")
HEAD = "| package | licence |\n|---|---|\n"
#: The one machine that MXNet 1.9.1 has wheels for on both CPUs and GPUs.
MACHINE = {
    "sys_platform": "linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_system": "Linux",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
}
#: Markers may tell patch levels apart.
PYTHONS = ("3.9.25", "3.10.0", "3.10.20", "3.11.0", "3.11.15")


def locked(root=ROOT):
    """Return the names of all packages that some supported Python installs."""
    return {
        name
        for lock in LOCKS
        for name, marker in _entries(
            (root / f"requirements/locks/{lock}.txt").read_text()
        )
        if not marker or any(_holds(marker, python) for python in PYTHONS)
    }


def _entries(text):
    pattern = r"^([a-z0-9-]+)==[^ ;\\]+(?: ; ([^\\\n]+))?"
    return re.findall(pattern, text, flags=re.MULTILINE)


def _holds(marker, python):
    short = ".".join(python.split(".")[:2])
    versions = {"python_full_version": python, "python_version": short}
    return Marker(marker.strip()).evaluate({**MACHINE, **versions})


#: Of packages whose metadata name none: what the file LICENSE beside them is.
IN_A_FILE = {"quickjs": "MIT"}


def declared(paths=None):
    """Return {package: licence} of the packages in an environment."""
    found = metadata.distributions(path=paths) if paths else metadata.distributions()
    return {canonicalize_name(d.metadata["Name"]): licence(d.metadata) for d in found}


def licence(about):
    """Return the licence that a package's metadata declare, on one short line."""
    if about.get("License-Expression"):
        return about["License-Expression"]
    prefix = "License :: "
    classifiers = {
        c.split(" :: ")[-1]
        for c in about.get_all("Classifier", [])
        if c.startswith(prefix) and c != prefix + "OSI Approved"
    }
    if classifiers - {"Other/Proprietary License"}:
        return "; ".join(sorted(classifiers))
    lines = (about.get("License") or "").strip().splitlines()
    if lines and len(lines[0]) < 60:
        return lines[0]
    return "; ".join(classifiers) or IN_A_FILE.get(about["Name"], "not declared")


def read(page):
    """Return {package: licence} of the table in `page`."""
    rows = page.split(HEAD)[-1]
    return dict(re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", rows, flags=re.MULTILINE))


def main():
    """Write the page; return the exit status."""
    page = ROOT / "reference/licences.md"
    text = page.read_text()
    known = read(text)
    for paths in (None, *([path] for path in sys.argv[1:])):
        known.update(declared(paths))
    names = sorted(locked())
    missing = [name for name in names if name not in known]
    if missing:
        print(f"No environment has {', '.join(missing)}.", file=sys.stderr)
        return 1
    table = "".join(f"| {name} | {known[name]} |\n" for name in names)
    page.write_text(text.split(HEAD)[0] + HEAD + table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
