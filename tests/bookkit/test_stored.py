"""Results that are measured where that is possible, and read where it is not."""

import importlib
import json
import re
import subprocess
import sys

import pytest
from sanitizer import sanitize

from bookkit import stored


def measured(start=1):
    """A result with what JSON changes: a tuple, and keys that are numbers."""
    return {"rows": (start, 2.5), 3: "three"}


def no_box():
    return "no network namespaces here"


def a_box():
    return None


def fails():
    raise ArithmeticError("on purpose")


@pytest.fixture(autouse=True)
def not_forced(monkeypatch):
    monkeypatch.delenv(stored.ONLY_STORED, raising=False)


def test_where_it_can_be_measured_nothing_is_read_or_written(tmp_path, capsys):
    found = stored.result("x", measured, 7, why_not=a_box, folder=tmp_path)
    assert found == {"rows": [7, 2.5], "3": "three"}
    assert capsys.readouterr().out.startswith("Source: measured now")
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_the_stored_result_is_the_same_and_says_from_where(
    tmp_path, capsys
):
    stored.record("x", measured, 7, folder=tmp_path)
    found = stored.result("x", fails, why_not=no_box, folder=tmp_path)
    assert found == stored.result("x", measured, 7, why_not=a_box, folder=tmp_path)
    line = capsys.readouterr().out.splitlines()[0]
    pattern = (r"Source: recorded on 20\d\d-\d\d-\d\d at commit \S+, .+, \d+ cores "
               r"\(no network .+\)")  # fmt: skip
    assert re.fullmatch(pattern, line)


def test_several_from_one_place_say_so_once(tmp_path, capsys):
    for name in ("x", "y"):
        stored.record(name, measured, folder=tmp_path)
    x, y = stored.several(["x", "y"], folder=tmp_path)
    assert x == y and capsys.readouterr().out.count("Source: recorded on ") == 1


def test_both_lines_are_the_same_for_nbval(tmp_path, capsys):
    stored.record("x", measured, folder=tmp_path)
    for why_not in (a_box, no_box):
        stored.result("x", measured, why_not=why_not, folder=tmp_path)
        print("next line")
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert first != third and sanitize(first) == sanitize(third)
    assert sanitize(second) == sanitize(fourth) == "next line"


def test_a_failure_of_the_measurement_is_not_covered_up_by_a_stored_result(tmp_path):
    stored.record("x", measured, folder=tmp_path)
    with pytest.raises(ArithmeticError):
        stored.result("x", fails, why_not=a_box, folder=tmp_path)


def test_a_measurement_that_fails_leaves_the_old_record(tmp_path):
    before = stored.record("x", measured, folder=tmp_path)
    with pytest.raises(ArithmeticError):
        stored.record("x", fails, folder=tmp_path)
    assert stored.read("x", tmp_path) == before
    assert stored.names(tmp_path) == ["x"]


def test_a_variable_asks_for_the_stored_result(tmp_path, monkeypatch, capsys):
    stored.record("x", measured, folder=tmp_path)
    monkeypatch.setenv(stored.ONLY_STORED, "1")
    stored.result("x", fails, why_not=a_box, folder=tmp_path)
    assert "D2L_EXT_STORED=1" in capsys.readouterr().out


def test_what_is_neither_measured_nor_stored_says_how_to_store_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"bookkit\.stored x MODULE:FUNCTION"):
        stored.result("x", measured, why_not=no_box, folder=tmp_path)


def test_a_function_that_no_later_run_could_find_is_refused(tmp_path):
    with pytest.raises(ValueError, match="define it in a module"):
        stored.record("x", lambda: 1, folder=tmp_path)


@pytest.mark.parametrize("name", stored.names())
def test_a_stored_result_says_where_it_comes_from_and_can_be_measured_again(name):
    row = stored.read(name)
    assert {"date", "machine", "seconds", "result"} <= row.keys()
    assert re.fullmatch("[0-9a-f]{7,}", row["commit"])  # not "-dirty"
    assert row["command"] == f"python -m bookkit.stored {name}"
    assert row["digest"] == stored.digest(row)  # what was measured, and nothing else
    module, _, function = row["measure"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert json.loads(json.dumps(row["result"])) == row["result"]


def test_the_command_lists_what_is_stored():
    done = subprocess.run([sys.executable, "-m", "bookkit.stored"], text=True,
                          capture_output=True, check=True)  # fmt: skip
    assert [line.split()[0] for line in done.stdout.splitlines()] == stored.names()


def test_a_name_that_is_not_stored_is_an_error_of_the_command(capsys):
    with pytest.raises(SystemExit):
        stored.main(["no-such-result"])
    assert "there is no stored result" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["measure", "args", "result", "seconds"])
def test_a_figure_changed_by_hand_is_noticed(tmp_path, key):
    stored.record("x", measured, 7, folder=tmp_path)
    record = stored.read("x", folder=tmp_path)
    assert record["digest"] == stored.digest(record)
    record[key] = "something else"
    assert record["digest"] != stored.digest(record)
