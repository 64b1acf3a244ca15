"""Taking turns: statistics, what must hold before a time is believed, processes that
step when they are told to, and whether the machine is quiet."""

import sys

import pytest

from benchmarks import machine, measure
from benchmarks.data_parallel.run import Run
from benchmarks.worker import Worker, WorkerFailed

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
            "sys.path.insert(0, os.getcwd())  # the repository's root\n"
            "from benchmarks.worker import serve\n"
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
                   "    def loss(self): return self.n")
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
        "D2L_EXT_DEVICES": "cpu"}


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
        "the hypervisor took away 0.25 cores during the run"]


def test_our_own_work_is_not_taken_for_work_of_others(monkeypatch):
    readings = iter([(100.0, 0.0), (130.0, 0.0)])
    monkeypatch.setattr(machine, "_cpu_seconds", lambda: next(readings))
    clock = machine.CpuClock()
    clock.at -= 10  # ten seconds ago
    assert clock.cores_busy(own=25.0) == pytest.approx(0.5, abs=0.01)
