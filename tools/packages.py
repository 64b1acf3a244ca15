"""Which packages are ours. The one list stands in `pyproject.toml`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def packages(root=ROOT):
    """Return the names of the packages that are installed, `d2l_ext` first."""
    # Python 3.9 and 3.10 have no parser for TOML.
    text = (root / "pyproject.toml").read_text("utf-8")
    listed = re.search(r"(?m)^root_packages = \[(.+)\]", text)[1]
    return tuple(re.findall(r'"(\w+)"', listed))


#: What is installed, and with what measures for stored results.
PACKAGES = packages()
SOURCES = (*PACKAGES, "benchmarks")
