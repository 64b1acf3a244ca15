"""What every result says of its origin, and the file that it becomes."""

import sys
from pathlib import Path

import machine
import report
from worker import Worker

from bookkit.provenance import provenance

HERE = Path(__file__).resolve().parent


def head():
    """The entries that all results begin with: date, commit, machine, how quiet it is.

    Takes a second to look at the machine, so call it before anything is started.
    """
    here = provenance()
    return {
        "schema": report.SCHEMA,
        "date": machine.now(),
        "commit": machine.commit(HERE.parent),
        "machine": {"processor": here["processor"], "cores": here["cores"],
                    "system": machine.system()},
        "versions": {"MXNet": here["mxnet"], "Python": here["python"]},
        "quiet": machine.quietness(_start_spinner),
    }  # fmt: skip


def _start_spinner():
    return Worker([sys.executable, str(HERE / "spin.py")], machine.cores(2))


def write(result, path, table):
    """Write `result` to `path` as JSON, and print it as `table` shows it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.to_json(result) + "\n", encoding="utf-8")
    print(table(result))
