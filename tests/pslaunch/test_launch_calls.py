"""A function that runs in every worker: how it gets there, and what comes back."""

import d2l_ext  # noqa: F401, I001
import functools
import math
import time

import mxnet as mx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra import numpy as some_numpy
from job_checks import nothing_left  # noqa: F401
from mxnet import np, npx

import pslaunch as launch
from pslaunch import calls
from d2l_ext.data_parallel.minibatch import shard_sizes

npx.set_np()
FIVE = 5


def adds_up(kv, value, arrays):
    kv.init("a", np.zeros(3))
    kv.push("a", np.full(3, value + kv.rank))
    out = np.zeros(3)
    kv.pull("a", out=out)
    print("rank", kv.rank, "has", out)
    return {"rank": kv.rank, "type": kv.type, "sum": out, "root": math.sqrt(value),
            "shards": shard_sizes(10, 2), "scalar": np.zeros(()).shape,
            "array": arrays["x"] * 2}  # fmt: skip


@pytest.mark.parametrize("env", [
    {}, {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 1000}, {"DMLC_LOCAL": 1},
])  # fmt: skip
def test_every_worker_runs_the_function_and_results_come_in_order_of_rank(env):
    job = launch.call_job(adds_up, 4, {"x": numpy.arange(3)}, num_servers=2, env=env)
    assert [found["rank"] for found in job.results] == [0, 1]
    for rank, found in enumerate(job.results):
        assert found["type"] == "dist_sync" and found["sum"].tolist() == [9, 9, 9]
        assert (found["root"], found["shards"], found["scalar"]) == (2, [5, 5], [])
        assert found["array"].dtype == "int64" and found["array"].tolist() == [0, 2, 4]
        said, line = job.output("worker", rank), f"rank {rank} has [9. 9. 9.]\n"
        # ps-lite may tell of messages that it sends again, and abort when all is done.
        assert said == line or "PS_RESEND" in env and line in said
    assert (job.returncode, job.cause) == (0, None)


def fails_in_one(kv):
    kv.init("a", np.zeros(3))
    if kv.rank == 1:
        raise ArithmeticError("on purpose")
    kv._barrier()


def test_a_function_that_raises_ends_the_job_with_its_traceback():
    clock = time.monotonic()
    with pytest.raises(launch.LaunchError) as caught:
        launch.call(fails_in_one)
    assert time.monotonic() - clock < 40
    assert caught.value.job.cause == "worker 1 ended with code 1"
    message = str(caught.value)
    assert 'raise ArithmeticError("on purpose")' in message  # the line of the source
    assert message.endswith("ArithmeticError: on purpose")


def makes_its_own(kv, kind):
    own = mx.kv.create(kind)
    return kv is None, own.rank, own.num_workers


def test_without_a_type_the_function_makes_its_store_itself():
    found = launch.call(makes_its_own, "dist_async", num_workers=1, kv_type=None)
    assert found == [[True, 0, 1]]


def returns_a_file(kv):
    return open("/dev/null")


def test_a_result_that_cannot_travel_is_named():
    job = launch.call_job(returns_a_file, kv_type=None, num_workers=1, check=False)
    assert job.returncode == 1 and job.results is None
    assert "a TextIOWrapper cannot" in job.last_lines(1)


# ---- The function's source ----


def test_modules_and_what_is_imported_from_them_are_imported_there():
    def inner(kv):
        def deeper():
            return time.time(), numpy.pi, npx.relu, mx.nd, shard_sizes

        class Own:
            five = 5
            ten = 2 * five

        return [deeper, Own, gluon, autograd]  # noqa: F821, imported there

    first = calls.script(inner).splitlines()[:8]
    assert first == [
        "import mxnet.autograd as autograd", "import mxnet.gluon as gluon",
        "import mxnet as mx", "import mxnet.numpy_extension as npx",
        "import numpy as numpy",
        "from d2l_ext.data_parallel.minibatch import shard_sizes as shard_sizes",
        "import time as time", "",
    ]  # fmt: skip


def uses_a_constant(kv):
    return FIVE


def uses_a_function(kv):
    return adds_up(kv, 1, {})


@functools.wraps(shard_sizes)
def says_it_is_another(n, k):
    return FIVE


def uses_an_impostor(kv):
    return says_it_is_another(1, 1)


def uses_nothing_known(kv):
    return unheard_of  # noqa: F821


def around(five):
    def worker(kv):
        return five

    return worker


@pytest.mark.parametrize("function, message", [
    (lambda kv: 1, "give a function that was defined with def"),
    (print, "give a function that was defined with def"),
    (around(5), "worker uses five of the function around it"),
    (uses_a_constant, "uses FIVE, which is defined outside of it: make it an"),
    (uses_a_function, "uses adds_up, which is defined outside of it"),
    (uses_an_impostor, "uses says_it_is_another, which is defined outside of it"),
    (uses_nothing_known, "uses unheard_of, which is not defined"),
])  # fmt: skip
def test_a_function_that_cannot_be_sent_is_refused_with_the_reason(function, message):
    with pytest.raises(ValueError, match=message):
        launch.call(function)


@pytest.mark.parametrize("value, kind", [
    ({1, 2}, "set"),
    ({1: "a"}, "dict"),  # JSON would make a text of the key
    (numpy.array([object()]), "ndarray"),
])  # fmt: skip
def test_an_argument_that_cannot_be_sent_is_refused(value, kind):
    with pytest.raises(TypeError, match=f"; a {kind} cannot$"):
        launch.call(makes_its_own, value)


# ---- Values ----

leaves = some.one_of(
    some.none(), some.booleans(), some.integers(), some.floats(allow_nan=False),
    some.text(),
    some_numpy.arrays(some.sampled_from(["float32", "int64", "bool"]),
                      some_numpy.array_shapes(min_dims=0, min_side=0)),
)  # fmt: skip
trees = some.recursive(
    leaves, lambda t: some.lists(t) | some.dictionaries(some.text(), t), max_leaves=8
)


def same(a, b):
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b, equal_nan=a.dtype == "f")
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@given(value=trees)
@settings(max_examples=100)
def test_values_come_back_as_they_went(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "v"
    calls.save(path, value)
    assert same(value, calls.load(path))


def test_arrays_of_mxnet_come_back_as_numpys_and_tuples_as_lists(tmp_path):
    calls.save(tmp_path / "v", (mx.nd.ones(2), np.ones(2), numpy.float32(0.5)))
    first, second, third = calls.load(tmp_path / "v")
    assert type(first) is type(second) is numpy.ndarray and third == 0.5
