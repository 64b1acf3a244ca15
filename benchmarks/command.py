"""The command of a benchmark: its options, its rows, and the file that it writes."""

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path

from bookkit import stored

from .machine import warning_lines
from .measure import Disagreement

#: Where results go that are not the book's. `make result NAME=…` stores those.
OUTPUT = Path(__file__).resolve().parents[1] / "_build" / "benchmarks"


def options_of(measured):
    """Return a parser with one option for each parameter of `measured`; numbers are
    from 1.

        python -m benchmarks.kvstore.in_step --rounds 1 --only lenet --no-peers
    """
    parser = argparse.ArgumentParser(
        description=stored.first_sentence(measured),
        epilog=f"All that was measured is written to {OUTPUT}.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, parameter in inspect.signature(measured).parameters.items():
        default, how = parameter.default, {"type": str}
        if isinstance(default, bool):
            how = {"action": argparse.BooleanOptionalAction}
        elif isinstance(default, tuple):
            how = {"nargs": "+"}
        elif isinstance(default, int):
            how = {"type": _positive}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default,
                            help=" ", **how)
    return parser


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def main(name, measured, argv=None, check=None, is_peer=lambda row: False):
    """Measure, write the record to `OUTPUT`, and print a line for each of its rows.

    `check(**options)`: raises `ValueError` for options that do not fit. Returns the
    exit status: 1 when the rows disagree, or when one could not be measured, unless it
    was left out or `is_peer(row)` is true.
    """
    parser = options_of(measured)
    options = vars(parser.parse_args(argv))
    try:
        if check:
            check(**options)
    except ValueError as error:
        parser.error(str(error))
    if measured.__module__ == "__main__":  # a record names the module
        module = importlib.import_module(sys.modules["__main__"].__spec__.name)
        measured = getattr(module, measured.__name__)
    try:
        done = stored.measure_and_store(name, measured, folder=OUTPUT, **options)
    except Disagreement as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    bars = [done.data["bar"]] if "bar" in done.data else done.data.get("bars", [])
    for row in done.data["rows"] + bars:  # the samples themselves are in the file
        print(json.dumps({key: value for key, value in row.items()
                          if value not in (None, "") and not isinstance(value, list)}))
    print(f"\n{done.origin()}; {done.machine['system']}")
    print(*warning_lines(done.data["quiet"]["warnings"]), sep="\n")
    print(f"written to {OUTPUT / name}.json")
    lost = [row for row in done.data["rows"] if "missing" in row]
    return int(any(not row["missing"].startswith("left out") and not is_peer(row)
                   for row in lost))
