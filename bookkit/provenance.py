"""The origin of a figure: machine, versions, date and commit."""

import os
import platform
import re
import subprocess
from calendar import month_name
from datetime import datetime, timezone
from html import escape
from pathlib import Path

from d2l_ext.runtime import SETTINGS, cores


class Provenance(dict):
    """The result of `provenance()`: a `dict` that prints as one line of text."""

    def __repr__(self):
        year, month, day = map(int, self["date"].split("-"))
        where = [f"on {self['processor']}", f"with {counted(self['cores'], 'core')}"]
        where += [f"and {counted(self['gpus'], 'GPU') if self['gpus'] else 'no GPU'}"]
        settings = "; ".join(f"{k}={v}" for k, v in self["settings"].items() if v)
        return (
            f"Run on {day} {month_name[month]} {year} at commit {self['commit']}, "
            f"with MXNet {self['mxnet']} and Python {self['python']}, "
            f"{' '.join(where)}; {settings or 'no settings'}."
        )

    def _repr_html_(self):
        return f'<p class="provenance">{escape(repr(self))}</p>'


def counted(number, noun):
    """Return "1 core", "2 cores", "4+4 batches"; a number without a noun as it is."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{ending if str(number) != '1' else ''}" if noun else number


def provenance():
    """Return the origin of a figure: a `Provenance` with date, versions, machine,
    settings.

    `commit`: the library's checkout, as `git describe` names it, with `-dirty` if the
    library has changed since; None outside a checkout.
    """
    import mxnet

    root = Path(__file__).resolve().parents[1]
    # What figures come from.
    packages = [path.parent.name for path in root.glob("*/__init__.py")]
    return Provenance({
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit(root, "benchmarks", *packages),
        "mxnet": mxnet.__version__,
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": cores(),
        "gpus": mxnet.context.num_gpus(),
        "settings": {k: os.environ.get(k) for k in SETTINGS},
    })


def commit(folder, *parts):
    """Return the checkout of `folder`, as `git describe` names it; None outside a
    checkout, and in a folder that the checkout ignores, such as a virtual environment.

    It ends in `-dirty` if `folder`, or these `parts` of it, differ from the commit.
    """
    try:
        if not _git(folder, "ls-files"):
            return None
        name = _git(folder, "describe", "--always", "--tags")
        changed = _git(folder, "status", "--porcelain", "--", *(parts or "."))
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{name}-dirty" if changed else name


def _git(folder, *arguments):
    command = ["git", *arguments]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def _processor(cpuinfo=Path("/proc/cpuinfo")):
    """Return the processor's name, with family and model where the name has no number.

    A virtual machine may report just "AMD EPYC" for processors that are years apart.
    """
    try:
        first, _, _ = cpuinfo.read_text().partition("\n\n")
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(re.findall(r"(?m)^(.*?)\s*: (.*)$", first))
    name = facts.get("model name", platform.machine())
    if re.search("[0-9]", name) or not {"cpu family", "model"} <= set(facts):
        return name
    return f"{name} (family {facts['cpu family']}, model {facts['model']})"
