"""The command of a benchmark: its options, its rows, and the file that it writes."""

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path

from bookkit import stored

from .machine import warning_lines

#: Where results go that are not the book's. `make result NAME=…` stores those.
OUTPUT = Path(__file__).resolve().parents[1] / "_build" / "benchmarks"


def arguments_of(measured, argv=None):
    """Arguments of `measured` from a command line: one option for each parameter.

        python -m benchmarks.kvstore.in_step --rounds 1 --only lenet --no-peers
    """
    parser = argparse.ArgumentParser(
        description=stored.summary(measured),
        epilog=f"All that was measured is written to {OUTPUT}.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, parameter in inspect.signature(measured).parameters.items():
        default, how = parameter.default, {"type": str}
        if isinstance(default, bool):
            how = {"action": argparse.BooleanOptionalAction}
        elif isinstance(default, tuple):
            how = {"nargs": "+"}
        elif default is not None:
            how = {"type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default,
                            help=" ", **how)
    return vars(parser.parse_args(argv))


def main(name, measured, argv=None):
    """Measure, write the record to `OUTPUT`, and print a line for each of its rows.

    Returns the exit status: how many rows failed that were not left out.
    """
    if measured.__module__ == "__main__":  # a record names the module
        module = importlib.import_module(sys.modules["__main__"].__spec__.name)
        measured = getattr(module, measured.__name__)
    done = stored.record(name, measured, folder=OUTPUT, **arguments_of(measured, argv))
    bars = [done.data["bar"]] if "bar" in done.data else done.data.get("bars", [])
    for row in done.data["rows"] + bars:  # the samples themselves are in the file
        print(json.dumps({key: value for key, value in row.items()
                          if value not in (None, "") and not isinstance(value, list)}))
    print(f"\n{done.origin()}; {done.machine['system']}")
    print(*warning_lines(done.data["quiet"]["warnings"]), sep="\n")
    print(f"written to {OUTPUT / name}.json")
    lost = [row["missing"] for row in done.data["rows"] if "missing" in row]
    return sum(not why.startswith(("left out", "not installed")) for why in lost)
