"""Results that not every machine can measure: measured here, or read from a file.

    python -m bookkit.stored                        what is stored, and from where
    python -m bookkit.stored seldom_10              measure it anew, and store it
    python -m bookkit.stored seldom_10 module:function      the same, for a new name
    python -m bookkit.stored --stale                what was measured by other code

`make result NAME=seldom_10` is the second of them.
"""

import argparse
import hashlib
import importlib.util
import inspect
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

#: The folder of results: in the library's checkout, or, if the library is installed,
#: in the checkout whose chapter runs.
FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
if not FOLDER.is_dir():
    FOLDER = Path("../../benchmarks/results")
#: Set to 1 to read stored results even where they could be measured.
ONLY_STORED = "D2L_EXT_STORED"
BOX = "in a cluster in a box on this machine"


@dataclass
class Record:
    """A result and its origin: the contents of a file in `FOLDER`.

    `what`: a line that describes the measurement. `measure`: the function, as
    MODULE:FUNCTION, that was called with `args` and `options`. `date`: its end, in UTC.
    `commit`: the library's, as `provenance` names it. `machine`: `processor`, `cores`
    and `system`. `versions`: of MXNet and Python, if known. `seconds`: the duration;
    None if unknown. `data`: the result. `code`: a digest of the function and of all in
    its package that it calls; `digest`: one of the result, which an edit by hand
    invalidates.
    """

    what: str
    measure: str
    date: str
    commit: str
    machine: dict
    versions: dict
    seconds: float
    data: object
    args: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    code: str = ""
    digest: str = ""

    def origin(self):
        """Return the date and machine of the measurement, in a few words."""
        return (
            f"{self.date[:10]} at commit {self.commit}, "
            f"{self.machine['processor']}, {self.machine['cores']} cores"
        )


def result(name, measure, *args, why_not=None, folder=None, where=BOX):
    """Return the result of `measure(*args)` if it can run here, else the stored `name`.

        rows = stored.result("networks_live", trials.live)

    `measure`: a function whose result consists of numbers, strings, lists and dicts; it
    passes through JSON, so that both ways have the same types. `why_not`: a function
    that returns None if `measure` can run, else a sentence; default `netbox.why_not`.
    `folder`: default `benchmarks/results`. `where`: the end of the line that is printed
    after a measurement.

    Prints the origin of the result on one line; writes nothing. Raises
    `FileNotFoundError` if the result can be neither measured nor read, and any
    exception of `measure`. Developed in the chapter *Unreliable networks*.
    """
    reason = _reason(why_not)
    if reason:
        return recorded(name, reason, folder)
    value = measure(*args)
    print(f"Source: measured now, {where}")
    return json.loads(json.dumps(value))


def recorded(name, reason="too long for a chapter", folder=None):
    """Return the stored result `name`; print its date, its machine and the reason."""
    return several([name], reason, folder)[0]


def several(names, reason="too long for a chapter", folder=None):
    """Return the stored results `names`, a list; print each origin once."""
    records = [read(name, folder) for name in names]
    for line in dict.fromkeys(record.origin() for record in records):
        print(f"Source: recorded on {line} ({reason})")
    return [record.data for record in records]


def measure_and_store(name, measure, *args, folder=None, **options):
    """Measure, and store the result with its origin; return the `Record`.

    `measure`: a function of a module other than `__main__`, so that a later run can
    find it; else `ValueError`, before it is called. A file of that name is replaced at
    the end.
    """
    home = f"{measure.__module__}:{measure.__qualname__}"
    if measure.__module__ == "__main__" or _find(home) is not measure:
        raise ValueError(f"{home} cannot be found again: define it in a module")
    from .provenance import provenance

    here, begin = provenance(), time.monotonic()
    data = json.loads(json.dumps(measure(*args, **options)))
    kept = Record(
        what=first_sentence(measure),
        measure=home,
        args=list(args),
        options=options,
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        commit=here["commit"],
        machine={
            "processor": here["processor"],
            "cores": here["cores"],
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        versions={"MXNet": here["mxnet"], "Python": here["python"]},
        seconds=round(time.monotonic() - begin, 1),
        data=data,
        code=code_digest(home),
    )
    write(name, kept, folder)
    return read(name, folder)


def write(name, record, folder=None):
    """Store `record` under `name`, with its digest."""
    record.digest = digest(record)
    path = _path(name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(_text(asdict(record)) + "\n", encoding="utf-8")
    path.with_suffix(".new").replace(path)


def read(name, folder=None):
    """Return the `Record` of `name`."""
    path = _path(name, folder)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no stored result {name!r} in {path.parent}; where it can be "
            f"measured, `python -m bookkit.stored {name} MODULE:FUNCTION` stores it"
        )
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def names(folder=None):
    """Return the names of all stored results."""
    return sorted(path.stem for path in Path(folder or FOLDER).glob("*.json"))


def digest(record):
    """Return a digest of a result and its origin, which reveals an edit by hand."""
    bound = {key: value for key, value in asdict(record).items() if key != "digest"}
    return _digest(json.dumps(bound, sort_keys=True))


def stale(folder=None):
    """Return the names of results whose function has since changed or been removed."""
    found = {name: read(name, folder) for name in names(folder)}
    return [name for name, record in found.items()
            if code_digest(record.measure) != record.code]


def code_digest(home):
    """Return a digest of the function `home`, MODULE:FUNCTION, and of what it calls.

    That is what it reaches in its own package, the programs that it starts among them,
    as `functions.Library.behind` finds it. "" if there is no such function.
    """
    from .functions import Library

    module = home.partition(":")[0]
    package = module.split(".")[0]
    place = importlib.util.find_spec(package)
    if place is None:
        return ""
    files = place.submodule_search_locations or [place.origin]
    return Library(Path(files[0]).parent, [package]).behind(home)


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def first_sentence(function):
    """Return the first sentence of its docstring, which describes the measurement."""
    first = (inspect.getdoc(function) or function.__name__).partition("\n\n")[0]
    return " ".join(first.split()).partition(". ")[0].rstrip(".") + "."


def _text(value, indent=""):
    """Return `value` as JSON: a line per entry; a list of plain values on one line."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{json.dumps(str(k))}: {_text(v, deeper)}" for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        lines = [_text(v, deeper) for v in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n" + ",\n".join(deeper + ln for ln in lines) + f"\n{indent}{right}"


def _path(name, folder):
    return Path(folder or FOLDER) / f"{name}.json"


def _reason(why_not):
    if os.environ.get(ONLY_STORED) == "1":
        return f"{ONLY_STORED}=1"
    if why_not is None:
        import netbox as box

        why_not = box.why_not
    return why_not()


def _find(home):
    module, _, function = home.partition(":")
    return getattr(importlib.import_module(module), function, None)


def main(argv=None):
    """List what is stored, or measure and store one result; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bookkit.stored", description=__doc__.splitlines()[0]
    )
    parser.add_argument("name", nargs="?", help="measure and store this one")
    parser.add_argument("function", nargs="?", help="MODULE:FUNCTION, for a new name")
    parser.add_argument("--stale", action="store_true",
                        help="name those whose function has changed since")
    given = parser.parse_args(argv)
    if given.stale:
        for name in stale():
            print(f"stale: result {name} (make result NAME={name})")
        return 0
    if given.name is None:
        for name in names():
            row = read(name)
            print(f"{name:24} {row.origin()}, {row.measure}")
        return 0
    args, options = [], {}
    if given.function is None:
        try:
            old = read(given.name)
        except FileNotFoundError as error:
            parser.error(str(error))
        given.function, args, options = old.measure, old.args, old.options
    try:
        measure = _find(given.function)
    except ModuleNotFoundError as error:
        parser.error(f"{given.function}: {error}")
    if measure is None:
        parser.error(f"{given.function}: there is no such function")
    kept = measure_and_store(given.name, measure, *args, **options)
    print(f"stored {given.name}: {kept.seconds} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
