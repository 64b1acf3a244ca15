"""Runs pytest; test files that fail beside others run again, alone.

    tools/run_tests.py [--side-by-side="-n 3 --dist loadfile"] [--about=MINUTES]
                       PATH... [OPTION...]

`OPTION`s are pytest's. The tests start processes and chapters measure times, on
machines that may be busy with more than this. A file that fails must pass alone in
each of five runs; it is then named at the end, because it is a finding, if not an
error. One that needed this in an earlier of the last five runs as well fails: that is
not chance. Runs in a folder are known to the next one by `_build/tests.json`, which
also says how long they took; `--about` is what to say where there was none.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from expected import about

#: With more failing files than this it was not chance: they are not run again.
FILES = 3
#: How often a file must pass alone; after so many seconds no further run begins.
ALONE, PATIENCE = 5, 300
#: What is kept of earlier runs, and of how many.
RECORD, KEPT = Path("_build/tests.json"), 5


class Remaining:
    """A plugin of pytest: says, while tests run, how long the others will take.

    `before`: {file of tests: its seconds} in an earlier run. An unknown file counts
    as the mean of the others, and all tests count the same if no file is known.
    """

    #: Nothing is said before this share of the work is done, and then every so often.
    SHARE, SECONDS = 0.1, 60

    def __init__(self, before):
        self.before, self.files = before, {}
        self.seconds, self.done = Counter(), Counter()
        self.begin = self.said = time.monotonic()

    def pytest_collection_finish(self, session):
        self._count(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)  # of xdist, whose workers collect the same
    def pytest_xdist_node_collection_finished(self, node, ids):
        self.config = node.config
        self._count(ids)

    def _count(self, ids):
        self.files = Counter(name.partition("::")[0] for name in ids) or self.files

    def pytest_configure(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += report.duration
        self.done[file] += report.when == "teardown"
        left = self.left(now := time.monotonic())
        if left and now - self.said > self.SECONDS:
            self.said = now
            terminal = self.config.pluginmanager.getplugin("terminalreporter")
            terminal.ensure_newline()
            terminal.write_line(f"{about(left)} left")

    def left(self, now):
        """Return the seconds left, at the pace so far; `None` if it is too early."""
        share = share_done(self.files, self.done, self.before)
        return (now - self.begin) * (1 - share) / share if share > self.SHARE else None


def share_done(files, done, before):
    """Return the share of the work that is done.

    `files`, `done`: {file: how many tests} in all, and so far. `before`: as above.
    """
    known = [before[file] for file in files if file in before]
    usual = sum(known) / len(known) if known else None
    work = {f: before.get(f, usual) if known else count for f, count in files.items()}
    so_far = sum(work[file] * done[file] / count for file, count in files.items())
    return so_far / sum(work.values()) if so_far else 0


def main(arguments):
    """Run pytest as `arguments` say; return the exit status."""
    known, options = _read(arguments)
    key = " ".join(known.paths)
    record = _recorded()
    last = record.setdefault(key, {"seconds": None, "files": {}, "forgiven": []})
    if last["seconds"]:
        print(f"{key}: {about(last['seconds'])}, as the last time here.", flush=True)
    elif known.about:
        print(f"{key}: {about(60 * known.about)} on two usual cores; a new estimate "
              "follows when a tenth is done.", flush=True)
    remaining = Remaining(last["files"])
    beside = shlex.split(known.side_by_side)
    code, failed = _beside_others([*beside, *options, *known.paths], remaining)
    forgiven = []
    # 1: tests failed. Any other code is about the run as a whole.
    if code == 1 and 0 < len(failed) <= FILES:
        earlier = {file for files in last["forgiven"] for file in files}
        code, forgiven = _alone(failed, options, earlier)
    if code == 0:
        last["seconds"] = time.monotonic() - remaining.begin
        last["files"] = {**last["files"], **remaining.seconds}
    if code in (0, 1):
        last["forgiven"] = [*last["forgiven"], forgiven][-(KEPT - 1) :]
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return code


def _recorded():
    """Return what is known of earlier runs; nothing if its file was cut off."""
    try:
        return json.loads(RECORD.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _read(arguments):
    """Return (the arguments of this program, pytest's options)."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--side-by-side", default="")
    parser.add_argument("--about", type=float)
    parser.add_argument("paths", nargs="+")
    return parser.parse_known_args(arguments)


def _beside_others(words, remaining):
    """Run pytest here; return its exit code, and the files of tests that failed."""
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        # The tests' own folders go with it.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        code = pytest.main([*words, "-o", f"cache_dir={folder}"], plugins=[remaining])
        noted = Path(folder, "v", "cache", "lastfailed")
        names = json.loads(noted.read_text()) if noted.exists() else []
    del os.environ["PYTEST_DEBUG_TEMPROOT"]
    return int(code), sorted({name.partition("::")[0] for name in names})


def _alone(files, options, earlier):
    """Run `files` alone, several times; return the exit status, and forgiven files.

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
          "passed. The failure is shown above.")
    again = sorted(earlier.intersection(files))
    if again:
        print(f"FAILED: {', '.join(again)} needed this in one of the {KEPT - 1} runs "
              "before as well. That is not chance: it must pass beside others.")
    return int(bool(again)), files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
