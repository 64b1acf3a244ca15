"""Twelve runs with a fault each: each log differs from the healthy one as it should."""

import d2l_ext  # noqa: F401, I001
import re

import pytest
from mxnet import npx

from exercisekit.clinic.parted_replicas import cases

#: Columns of a line of the log: rows, then lr, loss, norm, twin, arrays.
LINE = re.compile(r" *\d+  (.+?)  (\d\.\d+) +(\S+) +(\S+)  (\S+) × +(\S+)°  (.+)")


@pytest.fixture(autouse=True)
def numpy_arrays():
    npx.set_np()


def columns(case=None):
    found = [LINE.fullmatch(line).groups() for line in cases.run(case)
             if "restart" not in line and line != cases.HEAD]
    assert len(found) == cases.LAST
    return list(zip(*found))


def test_no_two_cases_have_the_same_log_and_none_the_healthy_one():
    logs = [tuple(cases.run(n)) for n in (None, *cases.CASES)]
    assert len(set(logs)) == len(cases.CASES) + 1 == 13


#: The columns of a case that differ from the healthy log because of its cause alone.
SHOWS = {
    "same shard": (0, 5), "mean of means": (5,), "schedule": (1,), "left out": (6,),
    "same order": (0,), "different starts": (6,), "copies": (3, 4), "data again": (0,),
    "metric": (2,), "factor": (3,), "torn checkpoint": (2,), "flipped bit": (6,),
}


@pytest.mark.parametrize("case", cases.CASES)
def test_the_symptom_stands_in_the_column_of_its_cause(case):
    cause = cases.CASES[case][0]
    found, healthy = columns(case), columns()
    for column in SHOWS[cause]:
        assert found[column] != healthy[column]


@pytest.mark.parametrize("cause, kept", [
    ("metric", (0, 1, 3, 4, 5, 6)), ("factor", (0, 1, 2, 4, 5, 6)),
    ("schedule", (0, 4, 5, 6)), ("same order", (1, 4, 5, 6)),
    ("data again", (1, 4, 5, 6)), ("torn checkpoint", (0, 1, 4, 5, 6)),
])
def test_what_has_nothing_to_do_with_a_cause_stays_as_it_was(cause, kept):
    (case,) = (n for n, row in cases.CASES.items() if row[0] == cause)
    found, healthy = columns(case), columns()
    for column in kept:
        assert found[column] == healthy[column]
