"""The command of a benchmark: its options, its table, and the file that it writes."""

import argparse
import importlib
import sys
from pathlib import Path

from bookkit import stored

from .machine import warning_lines

#: Where results go that are not the book's. `make result NAME=…` stores those.
OUTPUT = Path(__file__).resolve().parents[1] / "_build" / "benchmarks"


def parser(doc):
    """A parser of options, described by the first line of a module's docstring."""
    return argparse.ArgumentParser(
        description=doc.splitlines()[0],
        epilog=f"All that was measured is written to {OUTPUT}.",
    )


def run(name, measured, options, table, peer=lambda row: False):
    """Measure, write the record to `OUTPUT`, print it as `table(data)` shows it.

    Returns the exit status: 1 when a row could not be measured, unless it was left out
    or `peer(row)` is true.
    """
    if measured.__module__ == "__main__":  # a record names the module
        module = importlib.import_module(sys.modules["__main__"].__spec__.name)
        measured = getattr(module, measured.__name__)
    done = stored.record(name, measured, folder=OUTPUT, **vars(options))
    print(table(done.data))
    print(f"\n{done.origin()}; {done.machine['system']}")
    print(*warning_lines(done.data["quiet"]["warnings"]), sep="\n")
    print(f"written to {OUTPUT / name}.json")
    lost = [row for row in done.data["rows"] if "missing" in row]
    return int(any(not row["missing"].startswith("left out") and not peer(row)
                   for row in lost))
