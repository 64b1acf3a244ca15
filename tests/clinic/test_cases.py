"""Twelve runs with a fault each: each log differs from the healthy one as it should."""

import d2l_ext  # noqa: F401, I001
import re

import pytest
from mxnet import npx

from exercisekit.clinic.parted_replicas import cases

#: Columns of a line of the log: rows, then lr, loss, norm, twin, arrays.
LINE = re.compile(r" *\d+  (.+?)  (\d\.\d+) +(\S+) +(\S+)  (\S+) × +(\S+)°  (.+)")
RIGHT = ("1.000", "0.0")
each = pytest.mark.parametrize("case", cases.CASES)


@pytest.fixture(autouse=True)
def numpy_arrays():
    npx.set_np()


def columns(case=None):
    found = [LINE.fullmatch(line).groups() for line in cases.run(case)
             if "restart" not in line and line != cases.HEAD]
    assert len(found) == cases.LAST
    return list(zip(*found))


def twins(case):
    return list(zip(*columns(case)[4:6]))


def test_without_a_fault_the_program_is_one_device():
    assert set(twins(None)) == {RIGHT}
    assert set(columns()[6]) == {"none"}
    assert len(set(columns()[0])) == cases.LAST  # new rows in each step


def test_no_two_cases_have_the_same_log_and_none_the_healthy_one():
    logs = [tuple(cases.run(n)) for n in (None, *cases.CASES)]
    assert len(set(logs)) == len(cases.CASES) + 1 == 13


#: The columns of a case that differ from the healthy log because of its cause alone.
SHOWS = {
    "same shard": (0, 5), "mean of means": (5,), "schedule": (1,), "left out": (6,),
    "same order": (0,), "different starts": (6,), "copies": (3, 4), "data again": (0,),
    "metric": (2,), "factor": (3,), "torn checkpoint": (2,), "flipped bit": (6,),
}


@each
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


@each
def test_the_line_of_a_case_is_a_line_of_the_program_and_another_one(case):
    _, line, wrong = cases.CASES[case]
    lines = cases.program_lines()
    assert 0 <= line <= len(lines)
    if line:
        name = wrong.split(" ")[0].split("(")[0].split("[")[0]
        assert lines[line - 1].strip().startswith(name)
        assert lines[line - 1].strip() != wrong


def test_a_restart_heals_drift_and_begins_where_the_program_ended():
    for cause, arrays in (("flipped bit", "W1"), ("different starts", "W1 W2")):
        (case,) = (n for n, row in cases.CASES.items() if row[0] == cause)
        differing = columns(case)[6]
        assert differing[cases.RESTART - 1] == arrays
        assert differing[cases.RESTART] == "none"
