"""The benchmark of compressed pushes: its model, its result, and one small run."""

import json
import subprocess

import pytest

from benchmarks.kvstore import compression as benchmark

LINKS = {link.id: link for link in benchmark.LINKS}


def test_predictions_that_one_can_check_by_eye():
    def predicted(link):
        return [benchmark.predicted_seconds(LINKS[link], c) for c in (False, True)]

    plain, small = predicted("shared-100")
    assert plain == 2 * 2 * 4e6 * 8 / 100e6  # two workers, both ways, 4 MB
    assert plain / small == pytest.approx(2 / (1 + 1 / 16))  # the pull stays
    plain, small = predicted("uplink-100")
    assert plain / small == pytest.approx(16)
    assert predicted("loopback") == [None, None]  # no limit


def test_a_link_that_cannot_be_measured_is_a_row_that_says_so(monkeypatch):
    def no_permission(link, steps):
        raise RuntimeError(f"{link.name}: unshare failed: Operation not permitted")

    monkeypatch.setattr(benchmark, "measure", no_permission)
    row = benchmark.entry(LINKS["shared-100"], 2)
    assert row["missing"].endswith("Operation not permitted")


def test_a_job_that_dies_without_a_word_is_a_row_with_its_exit_code(monkeypatch):
    silent = subprocess.CompletedProcess([], -9, "", "")
    monkeypatch.setattr(benchmark.subprocess, "run", lambda *_, **__: silent)
    link = LINKS["loopback"]
    assert benchmark.entry(link, 1)["missing"] == f"{link.name}: exit code -9"


def test_a_step_is_as_long_as_that_of_the_slower_worker(monkeypatch):
    answer = [{"plain": [9, 1, 2], "compressed": [9, 1, 1]},
              {"plain": [9, 3, 1], "compressed": [9, 2, 1]}]

    def run(*_, **__):
        return subprocess.CompletedProcess([], 0, f"a line\n{json.dumps(answer)}\n", "")

    monkeypatch.setattr(benchmark.subprocess, "run", run)
    seconds = benchmark.measure(LINKS["loopback"], 3)
    assert seconds == {"plain": [3, 2], "compressed": [2, 1]}  # less the warm-up


def test_a_small_run_on_loopback_measures_both_ways():
    row = benchmark.entry(LINKS["loopback"], 2)
    assert len(row["plain"]["seconds"]) == len(row["compressed"]["seconds"]) == 1
