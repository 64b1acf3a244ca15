"""A page's arrays against NumPy's: the same numbers, shapes, types and errors."""

import gc
import math

import numpy
import pytest

from bookkit.lab import arrays, promises

SAME = """
a + 1 | a * b | a - b[0] | b / a | a / 0 | a // 2 | a % 2 | a ** 2 | -a | abs(b - 3)
a > 1 | a == b | ~(a > 1) | (a > 1) & (b > 2) | n | n + 1 | n / 2 | n // 2 | n * 1.5
n ** 2 | n % 2 == 0 | 2 - n | 1 / (n + 1) | f | f * 2.0 | f + n | f + np.float64(1)
h * 3 | h + f | h + n | h + h | np.float32(0.1) | np.float32(3) * 2.0 | u + 1 | u + u
a[1] | a[1, 2] | a[:, 1] | a[1:, ::2] | a[::-1] | a[..., 0] | a[None].shape | a[a > 1]
a[[1, 0]] | a[[0, 1], [2, 0]] | a[:, [2, 0]] | n[n[:2]] | n[-1] | a[:, None, 1:]
a[np.arange(2), np.array([0, 2])] | a.T | a.T[1] | a.reshape(3, 2) | a.reshape(-1)
a.T.reshape(2, 3) | a.swapaxes(0, 1) | t.transpose(2, 0, 1) | t.sum(axis=(0, 2)) | t.T
a.sum() | a.sum(0) | a.sum(axis=1, keepdims=True) | a.mean() | a.mean(1) | n.mean()
a.max() | a.max(axis=0) | a.min(1) | a.argmax() | a.argmax(axis=1) | n.sum() | a.prod()
a.any() | (a > 9).any(axis=0) | (a > -1).all() | a.std() | a.var(0) | (n > 1).sum()
n.cumsum() | a.cumsum(axis=1) | a.round(1) | a.clip(1, 2) | a.take([2, 0], axis=1)
a.nonzero() | n.repeat(2) | n[::-1].argsort() | a.ravel() | a.flatten() | a.tolist()
a.size | a.shape | a.ndim | a.nbytes | f.nbytes | h.itemsize | len(a) | a.T.tobytes()
a @ b.T | a @ b[0] | b[0] @ b[0] | t @ t.swapaxes(1, 2) | np.dot(a, b.T) | n @ n
np.exp(a) | np.exp(a * 1000) | np.log(a) | np.log(a - 2) | np.sqrt(n) | np.tanh(a)
np.maximum(a, 1) | np.maximum(a, b) | np.minimum(n, 2) | np.logaddexp(a, b)
np.maximum(a / 0, b) | np.maximum(b, a / 0) | np.minimum(a / 0, b) | (a / 0).max(0)
np.logaddexp.reduce([a, b]) | np.add.reduce(a) | np.maximum.reduce(a, axis=1)
np.where(a > 1, a, 0) | np.where(a > 1) | np.where(n > 1, 1.5, n) | np.sign(a - 1)
np.split(n, 2) | np.split(a, 3, axis=1) | np.array_split(n, 3) | np.hsplit(a, 3)
np.concatenate([a, b]) | np.concatenate([a, b], axis=1) | np.stack([a, b], axis=1)
np.vstack([n, n]) | np.hstack([n, n]) | np.hstack([a, b]) | np.concatenate([n, n * 1.0])
np.arange(3) | np.arange(1, 2, 0.25) | np.zeros((2, 1)) | np.ones(3, int) | np.eye(2)
np.full(2, 7) | np.full((1, 2), 0.5) | np.zeros_like(n) | np.linspace(0, 1, 5)
np.array([1, 2.5]) | np.array([[1], [2]]) | np.array([True, False]) | np.array(3.0)
np.array([1, 300], "uint8") | np.array([1e9, 1e-9], "float16") | n.astype("float32")
np.isclose(a, b) | np.allclose(a, a + 1e-12) | np.array_equal(a, b) | np.isfinite(a / 0)
np.nan_to_num(a / 0) | np.linalg.norm(a) | np.linalg.norm(a, axis=1) | np.prod((2, 3))
np.polyfit(n, 2.0 * n + 1, 1) | np.linalg.lstsq(b.T, b[0], rcond=None)[0]
np.cumsum(n) | np.outer(n, n) | np.roll(n, 1) | np.tile(n, 2) | np.flip(n) | np.diff(n)
np.unique([3, 1, 3]) | np.tril(t[0]) | np.tril_indices(3) | np.triu_indices(3, 1)
np.expand_dims(n, 1) | np.shape([[1], [2]])
np.size(a) | np.mean([1, 2]) | np.max(a, axis=0) | np.any(a > 2) | np.round(a, 1)
np.broadcast_to(n, (2, 4)) | list(np.ndindex(2, 2)) | [*a[0]] | sum([a, b]) | 1 in n
float(a[1, 1]) | a[0, 1] / 0 | a[0, 1] * 2 | n[1] / n[2] | n[1] // 2 | -n[1] | str(n)
str(b) | repr(b) | repr(f[:2]) | str(a > 1) | repr(t)
str(np.array([0.1, 10])) | f"{a[1, 1]:.2f}"
np.random.RandomState(3).randn(2, 3) | np.random.RandomState(3).randint(-9, 9, (2, 4))
np.random.RandomState(1).uniform(0.9, 1.1, 3) | np.random.RandomState(0).permutation(7)
np.random.RandomState(0).permutation(np.arange(8).reshape(4, 2))
np.random.RandomState(0).permutation([3, 4]) | np.random.RandomState(0).permutation(0)
np.random.RandomState(0).randint(0, 2**40, 3) | np.random.RandomState(0).randint(2**32)
np.random.RandomState(0).randint(0, 10, 5, dtype="int32")
np.tile(a, 2) | np.tile(n, (2, 1)) | np.tile(a, (2, 1, 2)) | np.flip(a) | np.flip(a, -1)
np.flip(a, 0) | np.flip(t, (0, 2)) | np.cumsum(t, axis=0) | np.cumsum(t, axis=1)
np.cumsum(a, 0) | np.cumsum(np.arange(24).reshape(2, 3, 4), axis=0) | (n > 1).cumsum()
np.sort(a, axis=0) | np.sort(a) | np.sort(t, axis=1) | np.argsort(a, axis=0)
a.argsort() | np.linspace(0, 1, 1) | np.linspace(0, 1, 0) | np.linspace(2, 3, 2)
u.sum() | u.cumsum() | u.sum(dtype="int32") | np.argmax(a / 0) | (a / 0).argmin(1)
u + n[:2] | np.array([-2]) + np.array([1], "uint32") | u + np.array([-1, 1], "int8")
n + np.array([1], "uint64")
np.dot(t, t) | np.dot(n[:2], t) | np.dot(a, np.ones((2, 3, 4))) | np.inner(a, b)
np.inner(t, t) | np.sin(a / 0) | np.cos(a / 0) | np.log1p(a - 1) | np.log1p(a / 0)
np.log(a / 0) | np.sqrt(a / 0) | np.squeeze(a[:1]) | np.squeeze(a[:1], axis=0)
sum(np.array([True, True, True])) | np.array([True])[0] * 3 | sum(a[0] > 1) * 2
np.bool_(True) + np.bool_(True) | np.bool_(True) * False
np.arange(4)[np.zeros(0, bool)]
sum(np.array([200, 200], "uint8")) | np.uint8(200) + 100 | np.uint8(200) + np.uint8(100)
np.int32(2147483647) + 1 | np.int8(100) + np.int16(100) | 3 * np.uint8(100)
np.uint8(3) - 5 | np.float16(1) / np.int8(3) | np.float32(3) * np.float16(2)
np.float32(3) * 2 | np.int8(7) ** 3 | np.int8(7) / np.int8(2) | 2 ** np.uint8(9)
np.int64(7) // 0 | np.int64(7) % 0 | np.float64(7) // 0 | np.float64(0) // 0 | a // 0
np.float64(7) % 0 | a % 0 | n // 0 | np.float16(65536) | np.full(2, 70000, "float16")
np.array([1, 65536]).astype("float16") | np.array([1, -70000], "float16")
np.arange(4, dtype="int8") + 200 | np.arange(4, dtype="int8") + 127 | u + 300 | u - 3
u + -1 | u * np.int16(3) | h * 300 | h * 70000 | h * 70000.0 | f * 1e300 | f * np.inf
h * np.nan | n * np.float32(2) | np.arange(3, dtype="uint32") * -1
(n > 1) * np.int8(2) | np.float64(2) * a | np.where(u > 1, u, 300) | np.diff(n > 1)
np.array([3, np.nan, 1]).argsort() | np.sort(a.T / 0) | np.sort(a / 0, axis=0)
np.unique([2, np.nan, 1, np.nan]) | n.reshape(-2, 2)
a[:, np.array([True, False, True])] | a[np.array([True, False])]
repr(np.array([0.3, 0.1], "float32")) | str(h[:2]) | repr(np.float32(0.3)) | repr(h[:1])
f"{np.float32(0.7)} {np.float16(0.1)}" | str(np.float32("nan")) | str(np.float32(1e20))
np.tril(a > 1) | np.triu(a > 1) | np.tril(n > 0) | np.triu([[1, 2], [3, 4]], 1)
np.logaddexp(0, 0) | np.logaddexp(n, 1) | np.logaddexp(u, u) | np.logaddexp.reduce(n)
np.logaddexp(np.inf, np.nan) | np.logaddexp(np.nan, np.inf) | np.logaddexp(-np.inf, 1)
a[a[0, 1] > 1] | a[False] | a[np.array(True)] | a[True, 0] | a[0, False] | a[:, True]
a[True, [0, 1]] | a[None, True] | a[..., True] | np.array(3.0)[True] | n[n[1] == 2]
np.add.reduce(np.array([100, 100], "int8")) | np.add.reduce([True, True])
np.add.reduce(a[:0]) | np.add.reduce(n[:0]) | np.multiply.reduce(u[:0])
np.logical_and.reduce([5]) | np.logical_or.reduce(a[:0]) | np.divide.reduce([8, 2])
np.bitwise_and.reduce(u[:0]) | np.bitwise_or.reduce(u) | np.logaddexp.reduce(a[:0])
np.where(n > 1, 1, [1, 2, 3, 4]) | np.where(n > 1, [1, 2, 3, 4], u[:1])
np.zeros(1, None) | np.asarray(n, a.dtype) | a.dtype == 3 | a.view()
~(a[0, 1] == 1) | ~(1 < n[2]) | (f[1] >= 2) & True | {n[1]: 5}[1] | n[2] < n | u[0] != 1
np.identity(2, "float32") | np.eye(3, 2, -1) | np.zeros((1, 0, 2)).tolist()
np.zeros((2, 2, 0, 3)).tolist() | np.tril(a[:, :0]) | np.triu(a[:0]) | np.eye(2, 0)
np.exp(u) | np.sqrt(n > 1) | np.floor(np.arange(3, dtype="int16"))
True & (n[1] == 1) | False|(a[1, 0] > 1) | True ^ (n[0] == 0) | 1 & (n[1] == 1)
np.arange(n[1] == 1) | sum([n[0] == 0, n[1] == 1]) | (n[0] == 0) * 2.5
[7] * (n[0] == 0)
~(n[0] == 0)
"""
CHANGED = """
x += 1 | x *= y | x[0] = 7 | x[:, 1] -= x[:, 0] | x[x > 1] = 0 | x[[0, 1], [1, 2]] = 9
x.T[0] = 5 | x.reshape(-1)[2:4] += 10 | x[...] = y | x[1:] = x[:1] | x[:] = [1, 2, 3]
v = x[0]; v += 1 | v = x.copy(); v[:] = 0 | x -= 0.5 * y | x[0], x[1] = y[1], y[0]
np.random.RandomState(0).shuffle(x) | np.random.RandomState(0).shuffle(x[0])
x.sort(axis=0) | x.T.sort()
x[None].reshape(-1)[0] = 9 | x[:, None].ravel()[1] = 9 | x[:1].T.reshape(3)[2] = 9
x.shape = (3, 2) | x.shape = -1; x[4] = 9
x[x[0, 1] > 1] = 9 | x[x[0, 1] > 2] = 9 | x[x[0, 1] > 1] += 1
x.fill(2) | x /= 0 | x[:, ::2] *= -1 | w = [*x]; w[0] += 1; w[1] = w[1] + 1
"""
RAISING = """
a + n | a.reshape(4) | n[9] | n[0, 0] | a @ a | np.split(n, 3) | bool(a) | float(a)
np.concatenate([a, n]) | np.stack([a, n]) | a[:, 5] | n.sum(axis=1) | a.max(axis=2)
np.concatenate([n, n], axis=1) | np.stack([n, n], axis=3) | n[:0].min() | n[:0].max()
n ** -1 | n[1] ** -1 | np.squeeze(a, axis=0) | np.flip(n, 1) | a.transpose(0, 2)
np.random.RandomState(0).randint(3, 3) | np.random.RandomState(-1)
np.random.RandomState(2**32) | n[:0].argmax() | n.reshape(-1, -1) | n.reshape(-2, -2)
n[np.array([True, False])] | a[np.array([True, False, True])] | a[:, [True, False]]
a[np.ones((2, 2)) > 0] | n[np.ones(5) > 0] | n[np.ones(5) > 0] + 1
(n > 1) - (n < 1) | (n > 1)[0] - (n < 1)[0]
np.zeros(2, 3) | np.ones(2, 3) | np.array([1], 5) | np.identity(2, 3) | n.astype([1])
a.max(1, True) | a.prod(1, True) | a.mean(1, True) | np.maximum.reduce(n[:0])
np.subtract.reduce(a[:0]) | n[True, 0, 0]
"""


def statements(text):
    return [s.strip() for s in text.replace("\n", " | ").split(" | ") if s.strip()]


def names(np):
    a = np.array([[0.0, 1.25, 2.5], [3.0, 1e-3, -1.0]])
    return {"np": np, "a": a, "b": np.array([[1.0, 2.0, 3.0], [4.0, 0.5, 6.0]]),
            "n": np.array([0, 1, 2, 3]), "f": np.array([0.1, 2, 1e20, 7], "float32"),
            "h": np.array([0.1, 2, 60000, 1e-7], "float16"),
            "u": np.array([1, 255], "uint8"),
            "t": np.arange(8.0).reshape(2, 2, 2), "x": a.copy(), "y": 2 * a + 1}


def told(value):
    """Kind, type of numbers, shape and numbers."""
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    if hasattr(value, "dtype"):
        return str(value.dtype), tuple(value.shape), told(value.tolist())
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.9g}") if abs(value) > 1e-12 else 0.0
    return repr(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", statements(SAME))
def test_an_expression_gives_what_numpy_gives(expression):
    assert told(eval(expression, names(arrays))) == told(eval(expression, names(numpy)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("statement", statements(CHANGED))
def test_an_array_and_its_views_change_as_numpys(statement):
    ours, theirs = names(arrays), names(numpy)
    exec(statement, ours), exec(statement, theirs)  # noqa: S102 - ours, above
    assert told(ours["x"]) == told(theirs["x"])


@pytest.mark.parametrize("expression", statements(RAISING))
def test_what_numpy_refuses_is_refused_by_the_same_kind_of_error(expression):
    with pytest.raises(Exception) as theirs:
        eval(expression, names(numpy))
    with pytest.raises(getattr(arrays, theirs.type.__name__, theirs.type)):
        eval(expression, names(arrays))


@pytest.mark.parametrize("expression", [
    "u.__iadd__(n[:2])", "n.sum(axis=1)", "n[:0].min()", "n[:0].max()", "n ** -1",
    "a.squeeze(1)", "np.random.RandomState(0).randint(3, 3)",
    "np.random.RandomState(-1)", "n.reshape(-1, -1)", "n[np.array([True, False])]",
    "a[:, np.array([True, False])]", "a[np.ones((2, 2)) > 0]", "(n > 1) - (n < 1)",
    "u.__iadd__(-1)", "np.zeros(2, 3)", "np.maximum.reduce(n[:0])"])
def test_an_error_says_what_numpys_says(expression):
    said = []
    for np in (numpy, arrays):
        with pytest.raises((TypeError, ValueError, IndexError)) as raised:
            eval(expression, names(np))
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_a_norm_of_another_order_is_refused():
    with pytest.raises(NotImplementedError, match="only the norm without `ord`"):
        arrays.linalg.norm(arrays.array([3.0, 4.0]), 1)


def test_a_view_of_another_type_is_refused():
    for kind in ("int64", arrays.float32, arrays.dtype("uint8"), int):
        with pytest.raises(TypeError, match="have no view of another type, here"):
            arrays.ones(2).view(kind)


def test_the_shape_of_what_is_not_contiguous_cannot_be_set():
    x = arrays.arange(8)[::2]
    with pytest.raises(AttributeError, match=r"not contiguous.* use .reshape\(\)"):
        x.shape = (2, 2)
    assert x.tolist() == [0, 2, 4, 6]
    assert x.reshape(2, 2).tolist() == [[0, 2], [4, 6]]


def test_random_numbers_without_a_seed_differ():
    one, two = arrays.random.RandomState(), arrays.random.RandomState()
    assert one.rand(4).tolist() != two.rand(4).tolist()
    assert arrays.random.seed() is None


@pytest.mark.parametrize("draw", [
    "normal(0, np.array([1.0, 2.0]), 2)", "normal([0, 1])", "uniform([0, 1], 2)",
    "uniform(0, np.ones(2))", "randint([1, 2], [3, 4])"])
def test_bounds_and_widths_of_random_numbers_are_single_numbers(draw):
    with pytest.raises(TypeError, match="must be a single number, not"):
        eval(f"np.random.{draw}", {"np": arrays})


def test_waits_are_counted_in_the_context_in_which_they_are():
    x = promises.np.ones(1)
    with promises.blocking_calls() as outer:
        with promises.blocking_calls() as inner:
            x.item()
        x.item()
    assert (len(outer), len(inner)) == (2, 1)
    with promises.blocking_calls() as outer:
        with promises.blocking_calls():
            pass
        x.item()
    assert len(outer) == 1


def test_bytes_of_arrays_are_counted_as_numpy_would_take_them():
    gc.collect()  # arrays of refused expressions, which their tracebacks hold
    before = arrays.used.now
    x = arrays.zeros(1000)
    x += 1
    arrays.used.most = arrays.used.now
    y = x + x * 2
    assert arrays.used.now - before == 16_000  # x, and y; the product is gone
    assert arrays.used.most - before == 24_000
    del y
    assert arrays.used.now - before == 8_000


def test_what_the_page_lacks_is_named():
    with pytest.raises(AttributeError, match="of this page has no 'einsum'"):
        arrays.einsum  # noqa: B018
