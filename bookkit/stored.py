"""Results of runs that not every machine can do: measured here, or read from a file.

    python -m bookkit.stored                        what is stored, and from where
    python -m bookkit.stored loss                   measure `loss` anew, and store it
    python -m bookkit.stored loss module:function   the same, for a new name
"""

import argparse
import hashlib
import importlib
import json
import os
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

#: Where the chapters keep them: in the checkout that holds this library, or, for one
#: that is installed elsewhere, beside the chapter that runs.
FOLDER = Path(__file__).resolve().parents[1] / "chapters" / "results"
if not FOLDER.is_dir():
    FOLDER = Path("../results")
#: Set to 1 to read stored results even where they could be measured.
ONLY_STORED = "D2L_EXT_STORED"
BOX = "in a cluster in a box on this machine"


def result(name, measure, *args, why_not=None, folder=None, where=BOX):
    """What `measure(*args)` returns if it can run here, else the stored `name`.

        rows = stored.result("loss", networks.loss_series)

    `measure`: a function whose result is made of numbers, texts, lists and dicts; it
    is returned as JSON gives it back, so that both ways have the same types.
    `why_not`: a function that returns None where `measure` can run, else a sentence;
    default `netbox.why_not`. `folder`: default `chapters/results`. `where`: ends
    the line that is printed when it was measured.

    Prints one line: where the result comes from. Nothing is written.
    Raises `FileNotFoundError` when it can be neither measured nor read, and whatever
    `measure` raises. Developed in the chapter *Unreliable networks*.
    """
    reason = _reason(why_not)
    if reason:
        return recorded(name, reason, folder)
    value = measure(*args)
    print(f"Source: measured now, {where}")
    return json.loads(json.dumps(value))


def recorded(name, reason="too long for a chapter", folder=None):
    """The stored result `name`; prints one line: from when, from where, and why."""
    return several([name], reason, folder)[0]


def several(names, reason="too long for a chapter", folder=None):
    """The stored results `names`, a list; prints each place that they are from once."""
    records = [read(name, folder) for name in names]
    for line in dict.fromkeys(map(_origin, records)):
        print(f"Source: recorded on {line} ({reason})")
    return [record["result"] for record in records]


def _origin(record):
    machine = record["machine"]
    return (f"{record['date'][:10]} at commit {record['commit']}, "
            f"{machine['processor']}, {machine['cores']} cores")  # fmt: skip


def record(name, measure, *args, folder=None):
    """Measure, store the result with its origin under `name`; return the record.

    `measure` must be a function of a module, so that a later run can find it.
    Raises `ValueError` when it is not. A file of that name is replaced at the end.
    """
    home = f"{measure.__module__}:{measure.__qualname__}"
    if _find(home) is not measure:
        raise ValueError(f"{home} cannot be found again: define it in a module")
    from .provenance import provenance

    here, begin = provenance(), time.monotonic()
    machine = {key: here[key] for key in ("processor", "cores", "python", "mxnet")}
    kept = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": here["commit"],
        "machine": {**machine, "system": f"{os.uname().sysname} {os.uname().release}"},
        "measure": home,
        "args": list(args),
        "command": f"python -m bookkit.stored {name}",
        "result": measure(*args),
        "seconds": round(time.monotonic() - begin, 1),
    }
    kept = json.loads(json.dumps(kept))
    kept["digest"] = digest(kept)
    path, text = _path(name, folder), json.dumps(kept, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(text, encoding="utf-8")
    path.with_suffix(".new").replace(path)
    return json.loads(text)


def read(name, folder=None):
    """The record of `name`, as `record` made it: a dictionary."""
    path = _path(name, folder)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no stored result {name!r} in {path.parent}; where it can be "
            f"measured, `python -m bookkit.stored {name} MODULE:FUNCTION` stores it"
        )
    return json.loads(path.read_text(encoding="utf-8"))


def digest(record):
    """Binds a result to what measured it: of the file's text, a change is noticed."""
    bound = [record[key] for key in ("measure", "args", "result", "seconds")]
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()[:16]


def names(folder=None):
    """The names of all stored results."""
    return sorted(path.stem for path in Path(folder or FOLDER).glob("*.json"))


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
    given = parser.parse_args(argv)
    if given.name is None:
        for name in names():
            row = read(name)
            machine = row["machine"]
            print(f"{name:24} {row['date'][:10]}  {row['commit']}  "
                  f"{row['seconds']:6.1f} s  "
                  f"{row['measure']}  {machine['processor']}, "
                  f"{machine['cores']} cores")  # fmt: skip
        return 0
    try:
        old = read(given.name) if given.function is None else {}
    except FileNotFoundError as error:
        parser.error(str(error))
    home = given.function or old["measure"]
    measure = _find(home)
    if measure is None:
        parser.error(f"{home}: there is no such function")
    kept = record(given.name, measure, *old.get("args", []))
    print(f"stored {given.name}: {kept['seconds']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
