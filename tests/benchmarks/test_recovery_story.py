"""The story of a disturbed job: what is read from its lines.

Real ones: `tests/trainkit/test_resume_jobs.py` and `tests/clusters/test_recovery.py`.
"""

import d2l_ext  # noqa: F401, I001
import queue

import matplotlib
import numpy
import pytest

from bookkit.figures import recovery_chart as chart
from benchmarks.clusters.recovery import story, trials

matplotlib.use("Agg")

LINES = [
    (1.0, "worker-0    | epoch 1/2  step 9/10  loss 2.1"),
    (1.1, "worker-1    | epoch 1/2  step 9/10  loss 2.2"),
    (1.2, "worker-0    | epoch 1/2  step 10/10  "),
    (1.3, "worker-0    | epoch 2/2  step 1/10  "),
    (4.0, "launch: worker 1 was ended by SIGKILL; restart 1 of 3"),
    (6.0, "worker-0    | going on from x/p-00000008.ckpt, step 8"),
    (6.5, "worker-0    | epoch 1/2  step 9/10  loss 2.1"),
    (7.0, "worker-1    | epoch 1/2  step 9/10  loss 2.1"),
    (9.0, '{"returncode": 0, "restarts": 1}'),
]


@pytest.fixture
def told():
    lines = queue.Queue()
    for line in LINES:
        lines.put(line)
    one = story.Story(losses=[(2.0, "worker 1")])
    story._take(one, lines)
    return one


def test_each_line_is_a_step_of_a_worker_in_a_start_of_the_job(told):
    assert told.steps[:4] == [(1.0, 1, 0, 9), (1.1, 1, 1, 9), (1.2, 1, 0, 10),
                              (1.3, 1, 0, 11)]
    assert told.steps[4:] == [(6.5, 2, 0, 9), (7.0, 2, 1, 9)]
    assert (told.restarts, told.job["restarts"]) == ([4.0], 1)
    assert told.first_steps() == [1.0, 6.5]


def test_what_is_done_again_is_what_came_after_the_checkpoint(told):
    assert told.went_on == {2: 8}
    assert told.done_again() == {2: 3}  # 9, 10 and 11
    assert told.reached(1, 11) and not told.reached(2, 10)
    assert not told.reached(1, 10, rank=1)


def test_the_chart_tells_new_steps_from_those_done_again(told):
    new, again = chart.draw(told).axes[0].get_lines()[:2]
    assert list(new.get_ydata()) == [9, 10, 11]
    assert list(again.get_ydata()) == [9]
    assert len(chart.draw(told, num_workers=1).axes) == 1


def test_only_equal_bits_are_the_same():
    one = {"param.0": numpy.zeros(2, "float32")}
    assert trials.same(one, {"param.0": numpy.zeros(2, "float32")})
    assert not trials.same(one, {"param.0": numpy.full(2, 1e-38, "float32")})
    assert not trials.same(one, {}) and not trials.same(one, None)
