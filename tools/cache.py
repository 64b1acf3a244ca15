"""Outputs of chapters that were executed before, under a key of all that made them."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import nbformat

from notebooks import code_cells

#: A change of these variables may change what a chapter shows.
PREFIXES = ("D2L_EXT_", "MXNET_", "OMP_")
#: Where the code lies that chapters import.
PACKAGES = ("d2l_ext", "bookkit", "pslaunch", "netbox", "benchmarks")


def surroundings(root):
    """Return a digest of what all chapters depend on.

    That is the code of `PACKAGES`, the installed packages, the
    environment variables that MXNet and the library read, and the devices.
    """
    root = Path(root)
    sources = sorted(path for p in PACKAGES for path in root.glob(f"{p}/**/*.py"))
    tools = sorted(Path(__file__).parent.glob("*.py"))
    facts = {
        "sources": {str(p.relative_to(root)): p.read_text() for p in sources},
        "tools": {p.name: p.read_text() for p in tools},
        "python": sys.version,
        "packages": sorted(
            f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions()
        ),
        "environment": {
            k: v for k, v in sorted(os.environ.items()) if k.startswith(PREFIXES)
        },
        "devices": [platform.machine(), _cores(), _gpus()],
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _gpus():
    if not shutil.which("nvidia-smi"):
        return ""
    query = ["nvidia-smi", "-L"]
    return subprocess.run(query, check=False, capture_output=True, text=True).stdout


class Cache:
    """Stored outputs in `folder`, for the given `surroundings`."""

    def __init__(self, folder, surroundings):
        self.folder = Path(folder)
        self.surroundings = surroundings

    def _file(self, path, nb):
        # Text around the cells is no part of the key: it is not executed.
        cells = [(c.source, c.metadata.get("tags", [])) for c in code_cells(nb)]
        key = json.dumps([self.surroundings, str(path), cells]).encode()
        return self.folder / f"{path.stem}-{hashlib.sha256(key).hexdigest()[:32]}.json"

    def recall(self, path, nb):
        """Put stored outputs into `nb`, chapter `path`; say whether there are any."""
        try:
            stored = json.loads(self._file(path, nb).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        for cell, (count, outputs) in zip(code_cells(nb), stored):
            cell.execution_count = count
            cell.outputs = [nbformat.from_dict(output) for output in outputs]
        return True

    def keep(self, path, nb):
        """Store the outputs of the executed `nb`, chapter `path`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self._file(path, nb)
        outputs = [(c.execution_count, c.outputs) for c in code_cells(nb)]
        # Renamed into place, so that an interrupted write leaves nothing behind.
        target.with_suffix(".new").write_text(json.dumps(outputs))
        target.with_suffix(".new").replace(target)
