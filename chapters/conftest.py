"""How nbval runs the chapters.

A finding is measured once, as nobody reads what is printed. A chapter for which a
machine has too few cores is skipped: MXNet's profiler has a slot for each core and two
more, so one that records four devices stops on one core with `TooFewCores`, as
`make book` says as well.
"""

import os
import re

import pytest

from bookkit import findings

os.environ.setdefault(findings.TRIES, "1")

#: In a traceback, with or without colours, and not in the code that it shows.
RAISED = re.compile(r"TooFewCores\S*: ")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    chapter = item.parent
    if report.failed and RAISED.search(report.longreprtext):
        chapter.too_few_cores = True
    # The cells after it lack what it defines.
    if report.failed and getattr(chapter, "too_few_cores", False):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 1, "this machine has too few cores for this")
