"""The benchmark's arithmetic, its checks, and one tiny run of the real thing."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

import machine
import measure
import report
import rows
from run import Run
from worker import Worker, WorkerFailed

SCHEMA = json.loads((BENCHMARKS / "schema.json").read_text())
TINY = ["--batch-size", "8", "--rounds", "1", "--steps", "1"]


# Statistics


def test_a_drift_that_hits_both_rows_leaves_their_ratio_alone():
    one, two = [60.0, 90.0, 240.0], [30.0, 45.0, 120.0]
    assert measure.median_of_ratios(one, two) == 2.0


def test_ratios_are_paired_before_the_median_is_taken():
    # The ratio of the medians would be 3.
    assert measure.median_of_ratios([10.0, 30.0, 40.0], [10.0, 15.0, 2.0]) == 2.0


@pytest.mark.parametrize("above, below", [([1.0, 2.0], [1.0]), ([], [])])
def test_rounds_that_cannot_be_paired_are_refused(above, below):
    with pytest.raises(ValueError, match="same rounds"):
        measure.median_of_ratios(above, below)


def test_one_slow_step_does_not_change_its_round():
    assert measure.round_medians([[0.030, 0.031, 9.0]]) == [31.0]


# What must hold before a time is believed


def test_losses_that_agree_are_accepted():
    apart = measure.check_agreement({"a": 2.3, "b": 2.3}, {"a": 2.2, "b": 2.20005})
    assert apart == pytest.approx(5e-5)


@pytest.mark.parametrize("wrong", [2.2002, float("nan")])
def test_a_row_that_trains_something_else_is_refused(wrong):
    with pytest.raises(measure.Disagreement, match="do not train the same network"):
        measure.check_agreement({"a": 2.3, "b": 2.3}, {"a": 2.2, "b": wrong})


def test_other_initial_weights_are_refused():
    with pytest.raises(measure.Disagreement, match="before the first step"):
        measure.check_agreement({"a": 2.3, "b": 2.4}, {"a": 2.2, "b": 2.2})


def test_steps_that_hardly_move_the_loss_prove_nothing_and_are_refused():
    with pytest.raises(measure.Disagreement, match="too little"):
        measure.check_agreement({"a": 2.3, "b": 2.3}, {"a": 2.299, "b": 2.299})


@pytest.mark.parametrize("final", [2.5, float("nan"), float("inf")])
def test_a_loss_that_did_not_fall_by_the_end_is_refused(final):
    with pytest.raises(measure.Disagreement, match="did not fall"):
        measure.check_trained({"a": 2.3}, {"a": final})


# Workers


@pytest.fixture
def start(tmp_path):
    """Starts a worker whose job has the given body; ends it after the test."""
    workers = []

    def start(body, **options):
        script = tmp_path / f"job{len(workers)}.py"
        script.write_text(
            "import os, sys\n"
            f"sys.path.insert(0, {str(BENCHMARKS)!r})\n"
            "from worker import serve\n"
            f"class Job:\n    about = {{}}\n{body}\nserve(Job())\n"
        )
        workers.append(Worker([sys.executable, str(script)], **options))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


def test_a_worker_times_the_steps_after_the_warm_up(start):
    worker = start("    n = 0\n"
                   "    def step(self): self.n += 1\n"
                   "    def loss(self): return self.n")  # fmt: skip
    worker.about()
    assert len(worker.steps(3, warm_up=2)) == 3
    assert worker.loss() == 5


def test_what_a_library_prints_is_not_taken_for_an_answer(start):
    worker = start("    def step(self): print('hello'); os.system('echo hello')")
    worker.about()
    assert len(worker.steps(2)) == 2


def test_settings_of_the_shell_do_not_reach_a_worker(start, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("MXNET_CPU_TEMP_COPY", "4")
    body = "    about = {k: os.environ.get(k) for k in ('OMP_NUM_THREADS', "
    body += "'MXNET_CPU_TEMP_COPY', 'D2L_EXT_DEVICES')}"
    assert start(body, environ={"D2L_EXT_DEVICES": "cpu"}).about() == {
        "OMP_NUM_THREADS": None, "MXNET_CPU_TEMP_COPY": None,
        "D2L_EXT_DEVICES": "cpu"}  # fmt: skip


def test_a_worker_that_cannot_start_says_why():
    with pytest.raises(WorkerFailed, match="/no/such/python: No such file"):
        Worker(["/no/such/python"])


def test_a_row_that_dies_on_the_way_is_reported_and_the_others_go_on(start):
    good = "    n = 1.0\n    def loss(self): self.n /= 2; return self.n\n"
    with Run({}) as run:
        run.workers = {
            "a": start(good + "    def step(self): pass"),
            "b": start(good + "    def step(self): sys.exit('out of memory')"),
        }
        run.each(lambda worker: worker.about())
        run.check()
        run.measure(rounds=2, steps=1)
    assert run.missing == {"b": "out of memory"}
    assert [len(turn) for turn in run.turns["a"]] == [1, 1]


# The machine


class SharedCore:
    """A spinner that takes twice as long when another one runs beside it."""

    def about(self): ...
    def begin(self, count): ...
    def close(self): ...

    def steps(self, count):
        return [1.0] * count

    def seconds(self):
        return [2.0] * 4


def test_two_processes_that_share_a_core_are_found_out():
    assert machine.spin_test(SharedCore, steps=4) == 0.5
    warnings = machine.quietness(SharedCore, seconds=0.01)["warnings"]
    assert warnings[-1].startswith("two processes side by side run at 0.50")


def test_work_of_others_during_the_run_is_a_warning():
    assert machine.run_warnings(others=0.01, stolen=None) == []
    assert machine.run_warnings(others=0.50, stolen=0.25) == [
        "other work kept 0.50 cores busy during the run",
        "the hypervisor took away 0.25 cores during the run"]  # fmt: skip


def test_our_own_work_is_not_taken_for_work_of_others(monkeypatch):
    readings = iter([(100.0, 0.0), (130.0, 0.0)])
    monkeypatch.setattr(machine, "_cpu_seconds", lambda: next(readings))
    clock = machine.CpuClock()
    clock.at -= 10  # ten seconds ago
    assert clock.cores_busy(own=25.0) == pytest.approx(0.5, abs=0.01)


# Rows and report


def turns(**ms):
    """Two rounds of one step, by row id with underscores."""
    return {k.replace("_", "-"): [[v / 1e3], [v / 1e3]] for k, v in ms.items()}


def test_every_row_is_compared_with_a_row_on_one_device():
    by_id = {row.id: row for row in rows.ROWS}
    assert {by_id[row.baseline].devices for row in rows.ROWS} == {1}
    assert set(rows.SCRATCH + rows.GLUON) <= set(by_id)


@pytest.mark.parametrize("peers, python, reason", [
    (False, "python", "left out by --no-peers"),
    (True, None, "not installed: make bench-peers"),
])  # fmt: skip
def test_a_peer_that_is_not_measured_has_a_reason(peers, python, reason):
    ours, missing = rows.chosen([], peers, python)
    assert missing == {row.id: reason for row in rows.ROWS if row.peer}
    assert len(ours) + len(missing) == len(rows.ROWS)


def test_an_unknown_row_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no row begins so.*scratch-1, scratch-2"):
        rows.chosen(["caffe"], True, None)


def verdicts(**ms):
    """(value, reached) of each bar, when no row has a page fault but the first."""
    faults = {id: [51 * (id == "scratch-1")] for id in turns(**ms)}
    bars = report.bars(turns(**ms), faults)
    return [bar["rows"] for bar in bars], [(b["value"], b["reached"]) for b in bars]


def test_the_best_step_is_judged_against_its_own_one_device_and_each_peer():
    compared, judged = verdicts(
        scratch_1=60, scratch_2=30, replay_1=50, replay_2=25, gluon_1=48,
        gluon_2_local=40, gluon_2_device=24, ddp_2=30, jax_2=32)  # fmt: skip
    assert compared == [["replay-1", "replay-2"], ["gluon-1", "gluon-2-device"],
                        ["gluon-2-device", "ddp-2"], ["gluon-2-device", "jax-2"],
                        ["scratch-1", None]]  # fmt: skip
    assert judged == [(2.0, True), (2.0, True), (0.8, True), (0.75, True), (51, False)]


def test_a_bar_that_is_missed_says_so():
    _, judged = verdicts(scratch_1=60, scratch_2=40, jax_2=40)
    assert judged[:2] == [(1.5, False), (None, None)]
    assert judged[2:4] == [(None, None), (1.0, False)]


# The real thing


@pytest.fixture(scope="module")
def tiny(run, tmp_path_factory):
    """A run with two rows of ours, and peers whose interpreter lacks them."""
    python = tmp_path_factory.mktemp("peer") / "python"
    python.write_text("#!/bin/sh\necho \"No module named 'torch'\" >&2\nexit 1\n")
    python.chmod(0o755)
    rows = ["--only", "scratch-1", "scratch-2", "gluon-2-local", "torch-1"]
    return run("data_parallel", *TINY, *rows, "--peer-python", python,
               schema="schema.json")  # fmt: skip


def test_a_tiny_run_writes_what_the_schema_promises(tiny):
    result, _ = tiny
    assert [entry["id"] for entry in result["rows"]] == [row.id for row in rows.ROWS]
    measured = [e for e in result["rows"] if "missing" not in e]
    assert [e["id"] for e in measured] == ["scratch-1", "scratch-2", "gluon-2-local"]
    assert all(len(e["rounds_ms"]) == len(e["rounds_ms"][0]) == 1 for e in measured)


def test_scratch_and_gluon_train_to_the_same_loss(tiny):
    agreement = tiny[0]["agreement"]
    assert agreement["apart"] <= agreement["tolerance"]


def test_a_peer_that_is_not_installed_is_a_row_that_says_so(tiny):
    result, text = tiny
    (entry,) = [e for e in result["rows"] if e["id"] == "torch-1"]
    assert entry["missing"] == "No module named 'torch'"
    assert "1 thread             1  not measured: No module named 'torch'" in text


def test_a_run_on_a_busy_machine_carries_its_warning_to_the_table(tiny):
    result, _ = tiny
    quiet = {**result["quiet"], "warnings": ["other work keeps 1.50 cores busy"]}
    last = report.table({**result, "quiet": quiet}).splitlines()[-2:]
    assert last == ["WARNING: not a quiet machine: other work keeps 1.50 cores busy.",
                    "Do not quote these figures."]  # fmt: skip


def test_json_has_a_line_for_each_list_of_numbers_and_loses_nothing(tiny):
    assert report.to_json({"ms": [[1.5, 2.0], [3.0]], "a": {"b": "[é,  c]"}}) == (
        '{\n "ms": [\n  [1.5, 2.0],\n  [3.0]\n ],\n "a": {\n  "b": "[é,  c]"\n }\n}'
    )
    assert json.loads(report.to_json(tiny[0])) == tiny[0]


def test_as_scripts_they_find_what_they_import(tmp_path):
    """Their own folder is on the path then, and the repository's is not."""
    code = f"import sys; sys.path[0] = {str(BENCHMARKS)!r}; import compression, "
    code += "cost_model, data_parallel, distributed, pipeline, where_to_cut"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_batch_that_four_devices_cannot_share_is_refused():
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "data_parallel.py", "--batch-size", "6"],
        check=False, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2
    assert "--batch-size 6: four devices share it evenly" in done.stderr


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("results/*.json")), ids=str)
def test_recorded_results_are_valid_and_from_a_quiet_machine(path):
    result, own = json.loads(path.read_text()), BENCHMARKS / f"{path.stem}.schema.json"
    schema = json.loads(own.read_text()) if own.exists() else SCHEMA
    jsonschema.validate(result, schema)
    assert result["quiet"]["warnings"] == []
