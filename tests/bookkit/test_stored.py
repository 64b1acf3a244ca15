"""Results that are measured where that is possible, and read where it is not."""

import importlib
import re
import sys
from dataclasses import fields, replace

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
    stored.measure_and_store("x", measured, 7, folder=tmp_path)
    found = stored.result("x", fails, why_not=no_box, folder=tmp_path)
    assert found == stored.result("x", measured, 7, why_not=a_box, folder=tmp_path)
    line = capsys.readouterr().out.splitlines()[0]
    pattern = (r"Source: recorded on 20\d\d-\d\d-\d\d at commit \S+, .+, \d+ cores "
               r"\(no network .+\)")
    assert re.fullmatch(pattern, line)


def test_several_from_one_place_say_so_once(tmp_path, capsys):
    for name in ("x", "y"):
        stored.measure_and_store(name, measured, folder=tmp_path)
    x, y = stored.several(["x", "y"], folder=tmp_path)
    assert x == y and capsys.readouterr().out.count("Source: recorded on ") == 1


def test_both_lines_are_the_same_for_nbval(tmp_path, capsys):
    stored.measure_and_store("x", measured, folder=tmp_path)
    for why_not in (a_box, no_box):
        stored.result("x", measured, why_not=why_not, folder=tmp_path)
        print("next line")
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert first != third and sanitize(first) == sanitize(third)
    assert sanitize(second) == sanitize(fourth) == "next line"


def test_a_failure_is_not_covered_up_by_a_stored_record_and_leaves_it(tmp_path):
    before = stored.measure_and_store("x", measured, folder=tmp_path)
    with pytest.raises(ArithmeticError):
        stored.result("x", fails, why_not=a_box, folder=tmp_path)
    with pytest.raises(ArithmeticError):
        stored.measure_and_store("x", fails, folder=tmp_path)
    assert stored.read("x", tmp_path) == before
    assert stored.names(tmp_path) == ["x"]


def test_a_variable_asks_for_the_stored_result(tmp_path, monkeypatch, capsys):
    stored.measure_and_store("x", measured, folder=tmp_path)
    monkeypatch.setenv(stored.ONLY_STORED, "1")
    stored.result("x", fails, why_not=a_box, folder=tmp_path)
    assert "D2L_EXT_STORED=1" in capsys.readouterr().out


def test_what_is_neither_measured_nor_stored_says_how_to_store_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"bookkit\.stored x MODULE:FUNCTION"):
        stored.result("x", measured, why_not=no_box, folder=tmp_path)


def test_a_function_that_no_later_run_could_find_is_refused(tmp_path):
    with pytest.raises(ValueError, match="define it in a module"):
        stored.measure_and_store("x", lambda: 1, folder=tmp_path)


def test_a_function_of_the_main_program_is_refused_before_it_is_called(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(fails, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "fails", fails, raising=False)
    with pytest.raises(ValueError, match="__main__:fails cannot be found again"):
        stored.measure_and_store("x", fails, folder=tmp_path)


@pytest.mark.parametrize("name", stored.names())
def test_a_stored_result_was_not_edited_by_hand_and_can_be_measured_again(name):
    record = stored.read(name)
    assert record.digest == stored.digest(record)
    assert re.fullmatch("[0-9a-f]{7,}", record.commit)  # not "-dirty"
    assert record.date and record.machine["processor"] and record.what
    module, _, function = record.measure.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_command_lists_what_is_stored(capsys):
    assert stored.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == stored.names()


def test_a_name_that_is_not_stored_is_an_error_of_the_command(capsys):
    with pytest.raises(SystemExit):
        stored.main(["no-such-result"])
    assert "there is no stored result" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        stored.main(["x", "no_such_module:f"])
    assert "no_such_module:f: No module named 'no_such" in capsys.readouterr().err


def test_whatever_is_changed_by_hand_in_a_record_is_noticed(tmp_path):
    record = stored.measure_and_store("x", measured, 7, folder=tmp_path)
    assert record.digest == stored.digest(record)
    for field in fields(stored.Record)[:-1]:
        changed = replace(record, **{field.name: "something else"})
        assert record.digest != stored.digest(changed), field.name


TRIAL = """
SIZE = 4  # a comment
def job(n):
    "How long."
    start("trial_of_a_test.work")
    return n + helper(n) + sum(each(n) for each in PARTS)
def helper(n):
    return SIZE
def part(n):
    return 2
def other(n):
    return 0
def start(program):
    pass
PARTS = [part]
"""


@pytest.mark.parametrize("old, new, differs", [
    ("return SIZE", "return SIZE + 1", True),  # a function that it calls
    ("return 2", "return 3", True),  # a function in a list
    ("print(3)", "print(4)", True),  # a program that it starts
    ("SIZE = 4", "SIZE = 5", True),
    ("return 0", "return 1", False),  # of another function
    ("helper", "assistant", False),
    ("a comment", "another", False),
    ("How long.", "How long it takes.", False),
])
def test_a_result_is_stale_when_what_measured_it_has_changed(
    tmp_path, monkeypatch, old, new, differs
):
    for place, change in (("one", ("", "")), ("two", (old, new))):
        package = tmp_path / place / "trial_of_a_test"
        package.mkdir(parents=True)
        files = {"__init__": "", "trial": TRIAL, "work": "print(3)"}
        for name, text in files.items():
            (package / f"{name}.py").write_text(text.replace(*change))
        monkeypatch.syspath_prepend(tmp_path / place)
        for name in ("trial_of_a_test", "trial_of_a_test.trial"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        job = importlib.import_module("trial_of_a_test.trial").job
        stored.measure_and_store("x", job, 1, folder=tmp_path / place)
        assert stored.stale(tmp_path / place) == []
    assert stored.stale(tmp_path / "one") == (["x"] if differs else [])


def test_a_result_is_stale_when_what_measured_it_is_no_longer_there():
    assert stored.code_digest("benchmarks.kvstore.compression:no_such") == ""
    assert stored.code_digest("no_such_package.module:function") == ""
