"""Runs pytest; files of tests that fail beside others run again, alone.

    tools/run_tests.py [--side-by-side="-n 3 --dist loadfile"] PATH... [OPTION...]

`OPTION`s are pytest's. The tests start processes and chapters measure times, on
machines that may be busy with more than this. A file that fails must pass alone in
each of five runs; it is named at the end then, because it is a finding, if no error.
One that needed this in an earlier of the last five runs as well fails: that is no
chance. Runs in a folder are known to the next one by `_build/forgiven.json`.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

#: With more failing files than this it was not chance: they are not run again.
FILES = 3
#: How often a file must pass alone; after so many seconds no further run begins.
ALONE, PATIENCE = 5, 300
#: The files that were forgiven in earlier runs, and in how many.
RECORD, KEPT = Path("_build/forgiven.json"), 5


def main(arguments):
    """Run pytest as `arguments` say; return the exit status."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--side-by-side", default="")
    parser.add_argument("paths", nargs="+")
    known, options = parser.parse_known_args(arguments)
    key = " ".join(known.paths)
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    before = record.get(key, [])
    beside = shlex.split(known.side_by_side)
    code, failed = _beside_others([*beside, *options, *known.paths])
    forgiven = []
    # 1: tests failed. Any other code is about the run as a whole.
    if code == 1 and 0 < len(failed) <= FILES:
        earlier = {file for files in before for file in files}
        code, forgiven = _alone(failed, options, earlier)
    if code in (0, 1):
        record[key] = [*before, forgiven][-(KEPT - 1) :]
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return code


def _beside_others(words):
    """Run pytest here; return its exit code, and the files of tests that failed."""
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        # The tests' own folders go with it.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        code = pytest.main([*words, "-o", f"cache_dir={folder}"])
        noted = Path(folder, "v", "cache", "lastfailed")
        names = json.loads(noted.read_text()) if noted.exists() else []
    del os.environ["PYTEST_DEBUG_TEMPROOT"]
    return int(code), sorted({name.partition("::")[0] for name in names})


def _alone(files, options, earlier):
    """Run `files` alone, in a row; return the exit status, and what is forgiven.

    `earlier`: files that were forgiven in one of the last runs.
    """
    named, begin, runs = ", ".join(files), time.monotonic(), 0
    print(f"\nAlone, {ALONE} times: {named}", flush=True)
    while runs < ALONE and (not runs or time.monotonic() - begin < PATIENCE):
        command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider"]
        code = subprocess.run([*command, *files], check=False).returncode
        if code:
            print(f"\nFAILED beside others, and alone in run {runs + 1}: {named}.")
            return code, []
        runs += 1
    # GitHub shows a line that begins so beside the run, green as it is.
    mark = "::warning::" if os.environ.get("GITHUB_ACTIONS") else ""
    print(f"\n{mark}FAILED ONCE beside others: {named}. Alone: {runs} of {runs} runs "
          "passed. Above is what failed.")
    again = sorted(earlier.intersection(files))
    if again:
        print(f"FAILED: {', '.join(again)} needed this in one of the {KEPT - 1} runs "
              "before as well. That is no chance: it must pass beside others.")
    return int(bool(again)), files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
