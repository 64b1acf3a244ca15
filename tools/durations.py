"""How long chapters run: recorded with their outputs, and said in words.

A chapter says that it runs in less than so long. `tests/book/test_durations.py`
compares that with the record, `chapters/durations.json`, which `tools/rerun.py` writes.
"""

import json
import os
from datetime import datetime, timezone

FILE = "chapters/durations.json"
#: Seconds, and how a chapter says that it runs in less.
BOUNDS = {
    10: "ten seconds",
    20: "twenty seconds",
    30: "half a minute",
    60: "a minute",
    120: "two minutes",
    300: "five minutes",
}
#: A machine that is a little slower should keep the promise, too.
ROOM = 1.2


def words(seconds):
    """The smallest bound that leaves some room above `seconds`, in words.

    Raises `ValueError` when no bound does.
    """
    for bound, name in BOUNDS.items():
        if seconds * ROOM <= bound:
            return name
    raise ValueError(f"{seconds:.0f} s: a chapter must not take so long")


def load(root):
    """What is recorded: a dict from page name to seconds, cores and date."""
    path = root / FILE
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def record(root, path, seconds):
    """Write down that the chapter `path` of the book in `root` took `seconds`."""
    recorded = load(root)
    recorded[path.with_suffix("").as_posix()] = {
        "seconds": round(seconds, 1),
        "cores": len(os.sched_getaffinity(0)),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    text = json.dumps(dict(sorted(recorded.items())), indent=1)
    (root / FILE).write_text(text + "\n", "utf-8")
