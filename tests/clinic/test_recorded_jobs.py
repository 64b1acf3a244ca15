"""Jobs that hang: the launcher names the rank and the call; clean ones say nothing."""

import sys
from pathlib import Path

import hangs
import pytest
from job_checks import nothing_left  # noqa: F401

import pslaunch as launch
from d2l_ext.clinic import flight_recorder

SOME = ("uneven (ring, 2)", "skips_in_memory (memory, 3)", "is_stopped (ring, 3)",
        "skips_a_key (dist_sync, 2)", "does_not_initialize (dist_sync, 3)",
        "two_differ_while_the_third_is_in_the_call_before (ring, 3)")


@pytest.mark.parametrize("words", SOME)
def test_the_launcher_names_rank_and_call_of_a_hang(words, nothing_left):  # noqa: F811
    """All of them: `python tests/helpers/hangs.py`."""
    hang = next(h for h in hangs.HANGS if words in h.name)
    trial = hangs.run(hang)
    assert trial.names(hang), trial


def clean(kv, folder):
    from mxnet import nd

    from d2l_ext.kvstore import ring

    flight_recorder.attach(kv, folder, 5)
    with flight_recorder.attach(ring.join(5), Path(folder, "ring"), 5) as r:
        kv.init(0, nd.zeros(5))
        for _ in range(3):
            x = nd.ones(5)
            kv.push(0, x)
            kv.pull(0, out=x)
            y = r.allreduce(x.asnumpy())
        kv._barrier()
        return y.tolist(), len(r.recorder.alarms) + len(kv.recorder.alarms)


def test_a_job_without_a_fault_gives_no_alarm(tmp_path, nothing_left):  # noqa: F811
    found = launch.call(clean, tmp_path, num_workers=2, num_servers=1)
    assert found == [([4.0] * 5, 0)] * 2
    for folder, number in ((tmp_path, 5), (tmp_path / "ring", 4)):
        calls, lives = flight_recorder.read(folder)
        assert len(calls) == 2 * number and len(lives) == 2


@pytest.mark.parametrize("store", ["ring", "dist_sync"])
def test_the_trainer_records_its_calls_where_the_variable_says(store, tmp_path):
    job = launch.run(
        [sys.executable, "-m", "d2l_ext.train", "--kv-store", store,
         "--num-epochs", "1", "--num-examples", "256"],
        num_workers=2, num_servers=int(store != "ring"),
        env={flight_recorder.FOLDER: tmp_path})
    assert job.returncode == 0, job.last_lines()
    calls, _ = flight_recorder.read(tmp_path / "start-1")
    assert {c.rank for c in calls} == {0, 1}
    ops = {"ring": {"allreduce", "broadcast 0"}, "dist_sync": {"init", "push"}}[store]
    assert ops <= {c.op for c in calls}
    assert {c.nbytes > 0 for c in calls if c.op in ops} == {True}
