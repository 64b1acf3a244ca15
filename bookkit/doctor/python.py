"""Python, NumPy and the packages of the book: are they there, and do they fit?"""

import platform
import sys
from importlib import metadata

from d2l_ext.runtime import SUPPORTED_PYTHON

from .finding import BAD, NOTE, OK, Finding

#: What the book cannot do without, apart from MXNet: what is imported, by whom.
NEEDED = {
    "d2l": "the chapters",
    "matplotlib": "the chapters",
    "scikit-learn": "the chapters",
    "nbclient": "make book",
    "jupyter-book": "make book",
    "nbval": "make test",
}
MAKE = "make book"
#: MXNet 1.9.1 reads `numpy.bool` when it is loaded, and 1.24 removed it.
NUMPY_WITHOUT_BOOL = (1, 24)


def examine(version_of=None, python=None):
    """Return the findings. `version_of(package)` is None for one that is missing."""
    version_of = version_of or installed
    python = python or sys.version_info[:3]
    return [_python(python), _numpy(version_of("numpy")), _packages(version_of)]


def installed(package):
    """The version of `package` in this environment, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python(version):
    oldest, newest = SUPPORTED_PYTHON
    text = f"{'.'.join(map(str, version))} ({platform.machine()})"
    if oldest <= version[:2] <= newest:
        return Finding("Python", text)
    return Finding("Python", f"{text}: not 3.9 to 3.11", BAD, "install Python 3.11")


def _numpy(version):
    if version is None:
        return Finding("NumPy", "not installed", BAD, MAKE)
    if tuple(map(int, version.split(".")[:2])) >= NUMPY_WITHOUT_BOOL:
        text = f"{version}: MXNet 1.9.1 needs one before 1.24"
        return Finding("NumPy", text, BAD, MAKE)
    return Finding("NumPy", version, OK)


def _packages(version_of):
    missing = [name for name in NEEDED if version_of(name) is None]
    if not missing:
        return Finding("packages", "all there")
    text = "missing: " + ", ".join(f"{name} ({NEEDED[name]})" for name in missing)
    fatal = any(NEEDED[name] == "the chapters" for name in missing)
    return Finding("packages", text, BAD if fatal else NOTE, MAKE)
