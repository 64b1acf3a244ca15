"""The lines beside a figure are the library's, and what a step marks runs in it."""

import inspect
import sys
from collections import Counter
from itertools import groupby

import numpy
import pytest
from figure_checks import State

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import (
    allreduce_ways,
    data_parallel_step,
    frame,
    pipeline_schedule,
    ring_allreduce,
    ring_rounds,
)
from d2l_ext.data_parallel import allreduce, lenet, step
from d2l_ext.data_parallel.allreduce import halving
from d2l_ext.devices import try_all_devices
from d2l_ext.pipeline import microbatch
from d2l_ext.tensor_parallel import ring_attention


def traced(code, functions, run):
    """Numbers of the marked lines of a listing, in the order in which they ran."""
    numbers = {n for own in code["marks"].values() for n in own}
    marked = {code["lines"][n].strip(): n for n in numbers}
    where, ran = {}, []
    for f in functions:
        source, first = inspect.getsourcelines(f)
        for n, line in enumerate(source, first):
            text = line.strip()
            if text in marked:
                where[inspect.getsourcefile(inspect.unwrap(f)), n] = marked[text]
    assert set(where.values()) == set(marked.values()), "a line is not the library's"

    def follow(frame, event, _):
        if event == "line":
            ran.append(where.get((frame.f_code.co_filename, frame.f_lineno)))
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        run()
    finally:
        sys.settrace(before)
    return [n for n in ran if n is not None]


def shown(d):
    """For every step of the clock, the numbers of the lines that it marks."""
    each = "range(steps(d) + 1).map((now) => acts(d, now).map((a) => d.code.marks[a]))"
    return [[n for own in marks for n in own] for marks in d.script.ask(d.choice, each)]


def flat(steps):
    return [n for n, _ in groupby(n for numbers in steps for n in sorted(numbers))]


def arrays(k, size=16):
    from mxnet import np

    return [np.ones(size * k, ctx=d) for d in try_all_devices(k)]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_ring_marks_what_runs_round_by_round(k):
    d = State(frame.Script("ring_allreduce", "x", ring_allreduce.data()),
              {"devices": k, "size": "840"})
    ran = traced(ring_allreduce.CODE, (allreduce.reduce_scatter, allreduce.allgather),
                 lambda: allreduce.allreduce_ring(arrays(k)))
    assert [n for n, _ in groupby(ran)] == flat(shown(d))


@pytest.mark.parametrize("order", ring_rounds.ORDERS)
def test_ring_attention_marks_what_runs_round_by_round(order):
    d = State(frame.Script("ring_rounds", "x", ring_rounds.data()),
              {"order": order, "devices": 3})
    chunks = ring_rounds.ORDERS[order](3)
    x = ring_attention.split(numpy.ones((1, 6, 1), "float32"), chunks,
                             try_all_devices(3))
    ran = traced(ring_rounds.CODE, (ring_attention.forward,),
                 lambda: ring_attention.forward(x, x, x, causal=True))
    assert [n for n, _ in groupby(ran)] == flat(shown(d))


@pytest.mark.parametrize("k", [4, 6])
def test_each_of_the_four_ways_marks_what_runs_round_by_round(k):
    code = allreduce_ways.CODE
    script = frame.Script("allreduce_ways", "x", allreduce_ways.data())
    d = State(script, {"devices": k})
    ways = {
        "star": (allreduce.allreduce,), "tree": (allreduce.allreduce_tree,),
        "ring": (allreduce.reduce_scatter, allreduce.allgather),
        "halving": (halving.fold, halving.halve, halving.double),
    }
    functions = [f for of_one in ways.values() for f in of_one]
    runs = (allreduce.allreduce, allreduce.allreduce_tree, allreduce.allreduce_ring,
            halving.allreduce_halving)
    for name, run in zip(ways, runs):
        own = {n for mark, lines in code["marks"].items() for n in lines
               if mark.split()[0] in (name, "fold" if name == "halving" else name)}
        ran = traced(code, functions, lambda run=run: run(arrays(k)))
        steps = [[n for n in numbers if n in own] for numbers in shown(d)]
        assert [n for n, _ in groupby(ran)] == flat(steps)


@pytest.mark.parametrize("title", pipeline_schedule.SCHEDULES)
def test_a_pipeline_marks_each_work_that_runs(title):
    from mxnet import np

    from d2l_ext.pipeline.schedule import gpipe, interleaved, one_f_one_b, zero_bubble

    make = {"GPipe": gpipe, "1F1B": one_f_one_b, "ZB-H1": zero_bubble,
            "interleaved 1F1B": lambda p, m: interleaved(p, m, 2)}[title]
    params, X = microbatch.init_dense(4, 3), np.ones((4, 3))
    if title in ("GPipe", "1F1B"):
        stages = microbatch.dense_stages(params, try_all_devices(2))
    else:
        many = 4 if "inter" in title else 2
        layers = [[(microbatch.dense, params[2 * s :][:2])] for s in range(many)]
        places = try_all_devices(2) * 2
        stages = [microbatch.SplitStage(*x) for x in zip(layers, places)]
    ran = traced(pipeline_schedule.CODE, (microbatch.gradients,),
                 lambda: microbatch.gradients(stages, make(2, 4), X, X,
                                              lambda out, y: out - y))
    d = State(frame.Script("pipeline_schedule", "x", pipeline_schedule.data()),
              {"schedule": title, "stages": 2, "chunks": 4})
    assert Counter(ran) == Counter(n for numbers in shown(d) for n in numbers)


def test_the_step_of_data_parallelism_marks_its_acts_in_their_order():
    devices, params = try_all_devices(2), lenet.init_params()
    from mxnet import np

    def run():
        replicas = [step.get_params(params, d) for d in devices]
        step.train_batch(np.ones((4, 1, 28, 28)), np.zeros(4), replicas, devices, 0.1)

    functions = (step.get_params, step.train_batch, step.forward_backward,
                 allreduce.allreduce)
    ran = traced(data_parallel_step.CODE, functions, run)
    d = State(frame.Script("data_parallel_step", "x", data_parallel_step.data()),
              {"devices": 2, "batch": 8})
    assert list(dict.fromkeys(ran)) == list(dict.fromkeys(flat(shown(d))))


def test_a_mark_that_is_in_no_line_is_refused():
    with pytest.raises(ValueError, match="no line of tree has 'sends to'"):
        frame.listing(allreduce.tree, up="sends to")
