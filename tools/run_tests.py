"""Runs pytest; files of tests that fail beside others run once more, alone.

    tools/run_tests.py [--side-by-side="-n 3 --dist loadfile"] PATH... [OPTION...]

`OPTION`s are pytest's. The tests start processes and chapters measure times, on
machines that may be busy with more than this. What fails alone as well is an error.
What passes then is named at the end: it is a finding, and no error.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

#: With more failing files than this it was not chance: they are not run again.
FILES = 3


def main(arguments):
    """Run pytest as `arguments` say; return its exit code, the last if it ran twice."""
    paths, options, beside = _read(arguments)
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        # The tests' own folders go with it.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        code = _pytest([*beside, *options, "-o", f"cache_dir={folder}", *paths])
        files = _failed(Path(folder))
    del os.environ["PYTEST_DEBUG_TEMPROOT"]
    # 1: tests failed. Any other code is about the run as a whole.
    if code != 1 or not 0 < len(files) <= FILES:
        return code
    named = ", ".join(files)
    print(f"\nOnce more, alone: {named}", flush=True)
    code = _pytest([*options, "-p", "no:cacheprovider", *files])
    if code == 0:
        # GitHub shows a line that begins so beside the run, green as it is.
        mark = "::warning::" if os.environ.get("GITHUB_ACTIONS") else ""
        print(f"\n{mark}FAILED ONCE, passed alone: {named}. Above is what failed.")
    return code


def _read(arguments):
    """The paths, pytest's options, and those for the first run alone."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--side-by-side", default="")
    parser.add_argument("paths", nargs="+")
    known, options = parser.parse_known_args(arguments)
    return known.paths, options, shlex.split(known.side_by_side)


def _pytest(arguments):
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, check=False).returncode


def _failed(cache):
    """The files of the tests that pytest noted as failed in its folder `cache`."""
    noted = cache / "v" / "cache" / "lastfailed"
    if not noted.exists():
        return []
    return sorted({name.split("::")[0] for name in json.loads(noted.read_text())})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
