"""The rows of the benchmark of distributed steps, and one tiny run of it."""

import subprocess

import pytest

from benchmarks.kvstore import in_step as distributed


def test_every_row_has_a_name_of_its_own_and_is_compared_with_a_row_that_exists():
    names = [row.id for row in distributed.ROWS]
    assert len(set(names)) == len(names)
    assert {row.against for row in distributed.ROWS} <= {"", *names}


def test_an_asynchronous_row_has_its_optimizer_on_the_store():
    rows = [row for row in distributed.ROWS if "_async" in row.kind]
    assert rows and all(row.on_store for row in rows)


def test_a_ratio_is_taken_within_a_round_and_there_is_none_without_a_yardstick():
    rows = [distributed.Row("a", "lenet"), distributed.Row("b", "lenet", against="a")]
    ms = {"a": [10.0, 30.0, 40.0], "b": [10.0, 15.0, 2.0]}
    first, second = distributed.entries(rows, ms, {})
    assert (first["ratio"], second["ratio"]) == (None, 0.5)
    first, second = distributed.entries(rows, {"a": [], "b": [2.0]}, {"a": "why"})
    assert (first["missing"], second["ratio"]) == ("why", None)


def test_an_unknown_row_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        distributed.main(["--only", "caffe"])
    assert "lenet-one-machine" in capsys.readouterr().err


def test_a_peer_that_dies_without_a_word_is_a_row_with_its_exit_code(monkeypatch):
    silent = subprocess.CompletedProcess([], -9, "", "")
    monkeypatch.setattr(distributed.subprocess, "run", lambda *_, **__: silent)
    row = next(row for row in distributed.ROWS if row.kind == "gloo")
    _, missing = distributed.turns([row], 1, 1, "/a/python")
    assert missing == {row.id: "exit code -9"}


def test_a_tiny_run_measures_a_row_without_a_store_and_one_with(run):
    words = "--rounds 1 --steps 1 --only lenet-one-machine lenet-async 20-gloo"
    words += " --peer-python /none"
    result, _ = run(distributed, "distributed", *words.split())
    assert ["missing" in row for row in result["rows"]] == [False, False, True]
