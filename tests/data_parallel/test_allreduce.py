"""After an allreduce every device holds the sum, whichever algorithm moved it."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from held_devices import done_alone, held
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, cpu, nd, np, npx

from d2l_ext.data_parallel import allreduce as module
from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.allreduce import ring, tree
from d2l_ext.data_parallel.allreduce.algorithm import algorithms
from d2l_ext.devices import try_all_devices

npx.set_np()

ALGORITHMS = {name: a.reduce for name, a in algorithms().items() if a.reduce}
DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8"]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
random_cases = settings(max_examples=90)


@st.composite
def parts(draw):
    """k numpy arrays of one shape and dtype, integers over the whole range."""
    k, dtype = draw(st.integers(1, 8)), draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 7), max_size=3))
    rng = numpy.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    if dtype.startswith("float"):
        draws = [rng.randn(*shape) * 10 ** rng.uniform(-2, 2) for _ in range(k)]
        return [numpy.asarray(x, dtype=dtype) for x in draws]
    info = numpy.iinfo(dtype)
    draws = [rng.randint(info.min, info.max, shape, dtype=dtype) for _ in range(k)]
    return [numpy.asarray(x, dtype=dtype) for x in draws]


def on_devices(parts, devices=None):
    devices = devices or try_all_devices(len(parts))
    return [np.array(x, dtype=x.dtype, ctx=d) for x, d in zip(parts, devices)]


def assert_is_the_sum(data, parts):
    """Exact for integers, which wrap around; else within k roundings of Σ|x|."""
    dtype = parts[0].dtype
    for summed in (x.asnumpy() for x in data):
        assert summed.dtype == dtype and summed.shape == parts[0].shape
        if dtype.kind == "f":
            # float64 has no better reference than the wider type of this machine.
            wide = numpy.array([x.astype("longdouble") for x in parts])
            bound = len(parts) * numpy.finfo(dtype).eps * abs(wide).sum(0)
            assert (abs(summed - wide.sum(0)) <= bound).all()
        else:
            assert (summed == numpy.array(parts).sum(0, dtype=dtype)).all()


@every_algorithm
@random_cases
@given(parts())
def test_any_arrays_become_their_sum_in_the_same_bits_by_the_bytes_of_the_formula(
    algorithm, parts
):
    k, itemsize, data = len(parts), parts[0].dtype.itemsize, on_devices(parts)
    with traffic.count(try_all_devices(k)) as moved:
        ALGORITHMS[algorithm](data)
    assert_is_the_sum(data, parts)
    assert len({x.asnumpy().tobytes() for x in data}) == 1
    assert moved == costs.expected(algorithm, k, parts[0].nbytes, itemsize)


@every_algorithm
def test_the_arrays_and_the_list_stay_the_same_objects(algorithm):
    data = on_devices([numpy.ones((2, 3))] * 3)
    before = list(data)
    ALGORITHMS[algorithm](tuple(data))  # a tuple: no item may be replaced
    ALGORITHMS[algorithm](data)
    assert all(x is y for x, y in zip(data, before))
    assert all((x.asnumpy() == 9).all() for x in before)


@every_algorithm
@pytest.mark.parametrize("order", [[2, 0, 1], [0, 0, 0], [1, 0, 1]])
def test_devices_may_come_in_any_order_and_more_than_once(algorithm, order):
    devices = [try_all_devices(3)[i] for i in order]
    parts = [numpy.arange(5.0) * 10**i for i in range(3)]
    data = on_devices(parts, devices)
    ALGORITHMS[algorithm](data)
    assert [x.ctx for x in data] == devices
    assert_is_the_sum(data, parts)


@every_algorithm
def test_many_allreduces_of_large_arrays_in_a_row_stay_right(algorithm):
    size = 3 * 2**18 + 1
    data = on_devices([numpy.full(size, i + 1, "float32") for i in range(3)])
    others = on_devices([numpy.full(size, 7, "float32") for _ in range(3)])
    for _ in range(4):
        ALGORITHMS[algorithm](data)
        ALGORITHMS[algorithm](others)
    for x, y in zip(data, others):
        assert (x.asnumpy() == 6 * 3**3).all()
        assert (y.asnumpy() == 7 * 3**4).all()


@every_algorithm
def test_inside_a_recorded_block_the_sum_is_the_same(algorithm):
    parts = [numpy.arange(5.0) * 10**i for i in range(3)]
    data = on_devices(parts)
    with autograd.record():
        ALGORITHMS[algorithm](data)
    assert_is_the_sum(data, parts)


@every_algorithm
def test_the_call_returns_while_the_devices_stand_still(algorithm):
    data = [np.ones((9, 9), ctx=d) for d in try_all_devices(3)]
    with held(*try_all_devices(3)):
        ALGORITHMS[algorithm](data)
    assert (data[0].asnumpy() == 3).all()


def rows_of(function):
    lines = [line.strip() for line in function.__doc__.splitlines()]
    return [line.split()[2:] for line in lines if line.startswith("round ")]


def test_the_drawing_of_the_ring_is_its_schedule():
    assert [[int(c) for c in row[:4]] for row in rows_of(ring)] == ring(4)
    assert (ring(1), ring(2)) == ([], [[1, 0], [0, 1]])


def test_the_drawing_of_the_tree_is_its_schedule():
    """`0 ←———— 2` is (2, 0): device 2 sends to device 0."""
    rounds = []
    for words in rows_of(tree):
        arrows = [i for i, w in enumerate(words) if w.startswith("←")]
        rounds.append([(int(words[i + 1]), int(words[i - 1])) for i in arrows])
    assert rounds == tree(6)
    assert (tree(1), tree(2)) == ([], [[(1, 0)]])


@pytest.mark.parametrize("half, copies", [
    (lambda sums, chunks: module.reduce_scatter(chunks), 1),
    (module.allgather, 2),  # each writes its own chunk, and sends it
], ids=["reduce_scatter", "allgather"])
def test_a_device_sends_its_first_message_while_the_others_stand_still(half, copies):
    # The engine orders work by array, and all chunks of a device are one array to it.
    # Were they sent from there, 1 → 2 would wait for 0 → 1, which would wait for 0.
    devices = [cpu(i) for i in range(3)]
    chunks = [module.cut(np.ones(99, ctx=d), 3) for d in devices]
    sums = module.reduce_scatter(chunks)
    for device in devices:
        did = done_alone(lambda: half(sums, chunks), device, devices)
        assert did.count("CopyCPU2CPU") == copies


def test_a_slice_of_an_array_is_written_in_place():
    x = np.zeros((2, 3), ctx=try_all_devices(2)[1])
    chunks = module.cut(x, 4)
    assert [c.size for c in chunks] == [1, 2, 1, 2]
    chunks[1] += np.ones(2, ctx=x.ctx)
    np.full(2, 5, ctx=try_all_devices(2)[0]).copyto(chunks[3])
    assert x.asnumpy().tolist() == [[0, 1, 1], [0, 5, 5]]


@every_algorithm
@pytest.mark.parametrize("arrays, error, message", [
    ([], ValueError, "the list is empty"),
    ([np.ones((2, 3)), np.ones((3, 2))],
     ValueError,
     r"array 1 has shape \(3, 2\), array 0 has \(2, 3\)"),
    ([np.ones(1), np.ones(())], ValueError, r"array 1 has shape \(\), .* \(1,\)"),
    ([np.ones(2), np.ones(2), np.ones(2, dtype="int32")],
     ValueError,
     "array 2 has dtype int32, array 0 has float32"),
    ([np.ones(2), numpy.ones(2)], TypeError, "array 1 is a .*numpy.ndarray"),
    ([nd.ones(2)], TypeError, "array 0 is a .*NDArray.*mxnet.np"),
    ([np.ones(2)] * 2, ValueError, "array 1 is in the list twice"),
])
def test_a_list_that_cannot_be_summed_is_refused(algorithm, arrays, error, message):
    before = [x.asnumpy().tolist() if hasattr(x, "asnumpy") else x for x in arrays]
    with pytest.raises(error, match=message):
        ALGORITHMS[algorithm](arrays)
    after = [x.asnumpy().tolist() if hasattr(x, "asnumpy") else x for x in arrays]
    assert str(after) == str(before)
