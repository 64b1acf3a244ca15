"""NumPy's arrays in pure Python: what the exercises use of them, and its neighbours.

A page's Python has no NumPy, and imports this by its name. Views share their numbers,
as NumPy's do, except that `reshape` of an array that is not contiguous copies. Types of
numbers, shapes and errors are NumPy's where the exercises use them. The numbers of an
array lie in a list; `used` counts the bytes that NumPy would need.
"""
# ruff: noqa: PLR0124 - only a NaN differs from itself

import builtins
import math
import operator
from contextlib import contextmanager
from itertools import product
from itertools import repeat as again

from . import chance as random
from . import indexing, scalars
from .scalars import SCALARS, divided, dtype, dtype_of, plain, promoted, scalar

inf, nan, pi, e, newaxis = math.inf, math.nan, math.pi, math.e, None
globals().update({name: kind for name, kind in SCALARS.items() if name != "bool"})
bool_, float_, int_, double = (SCALARS[n] for n in ("bool", "float64", "int64",
                                                    "float64"))
generic, number, integer, floating = scalars._Number, scalars._Number, int, float
__version__ = "1.23.5, in part"


class AxisError(ValueError, IndexError):
    """Raised for an axis that an array does not have."""


def _axis(axis, ndim):
    """Return `axis`, counted from 0."""
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def _axes(axis, ndim):
    """Return the axes that `axis` stands for: None for all, a number, or a tuple."""
    if axis is None:
        return range(ndim)
    return [_axis(a, ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]


def _of_sums(kind):
    """Return the type of sums of numbers of type `kind`."""
    return kind if kind.kind == "f" else dtype({"u": "uint64"}.get(kind.kind, "int64"))


class _Used:
    """Bytes of arrays: now, and the most since the last look."""

    def __init__(self):
        self.now = self.most = 0

    def add(self, nbytes):
        self.now += nbytes
        self.most = builtins.max(self.most, self.now)


used = _Used()


class _Numbers(list):
    """The numbers of an array and of its views."""

    __slots__ = ("nbytes",)

    def __init__(self, values, itemsize):
        super().__init__(values)
        self.nbytes = len(self) * itemsize
        used.add(self.nbytes)

    def __del__(self):
        used.now -= self.nbytes


def _made(values, shape, kind, cls=None):
    """Return an array with its own memory; `values`: numbers of type `kind`."""
    found = object.__new__(cls or ndarray)
    found._flat, found._first = _Numbers(values, kind.itemsize), 0
    found.shape_, found._steps = tuple(shape), indexing.c_steps(tuple(shape))
    found.dtype, found.base = kind, None
    return found


class ndarray:
    """Numbers of one type in a shape."""

    __array_ufunc__ = True
    __hash__ = None

    def __new__(cls, shape, dtype="float64"):
        return zeros(shape, dtype)

    # How it lies.

    @property
    def shape(self):
        return self.shape_

    @shape.setter
    def shape(self, shape):
        found = self.reshape(shape)
        if found._flat is not self._flat:
            raise AttributeError("the array is not contiguous: here its shape cannot "
                                 "be set; use .reshape() for a copy in that shape")
        self.shape_, self._steps = found.shape_, found._steps

    @property
    def size(self):
        return math.prod(self.shape_)

    @property
    def ndim(self):
        return len(self.shape_)

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.itemsize

    @property
    def T(self):
        return self.transpose()

    @property
    def flat(self):
        return iter(self.ravel())

    def _in_order(self):
        steps = indexing.c_steps(self.shape_)
        return self._steps == steps or all_(
            n == 1 or a == b for n, a, b in zip(self.shape_, self._steps, steps))

    def _places(self):
        if self._in_order():
            return range(self._first, self._first + self.size)
        return indexing.element_offsets(self._first, self.shape_, self._steps)

    def _values(self):
        if self._in_order():
            return list.__getitem__(
                self._flat, slice(self._first, self._first + self.size))
        return [*map(self._flat.__getitem__, self._places())]

    def _store(self, values):
        if self._in_order():
            self._flat[self._first : self._first + self.size] = values
        else:
            for place, value in zip(self._places(), values):
                self._flat[place] = value

    def _view(self, first, shape, steps):
        found = object.__new__(type(self))
        found._flat, found._first, found.shape_ = self._flat, first, tuple(shape)
        found._steps, found.dtype = tuple(steps), self.dtype
        found.base = self if self.base is None else self.base
        return found

    # Indices.

    def __getitem__(self, key):
        keys = indexing.whole(key, self.ndim)
        if all_(map(indexing.is_basic, keys)):
            first, shape, steps = indexing.basic(
                keys, self._first, self.shape_, self._steps)
            if not shape and Ellipsis not in (key if type(key) is tuple else ()):
                return scalar(self._flat[first], self.dtype)
            return self._view(first, shape, steps)
        places, shape = self._some(keys)
        values = [*map(self._flat.__getitem__, places)]
        return _made(values, shape, self.dtype) if shape else scalar(
            values[0], self.dtype)

    def _some(self, keys):
        return indexing.advanced(keys, self._first, self.shape_, self._steps, _indices,
                                 lambda arrays: broadcast_arrays(*arrays))

    def __setitem__(self, key, value):
        keys = indexing.whole(key, self.ndim)
        if all_(map(indexing.is_basic, keys)):
            view = self._view(*indexing.basic(
                keys, self._first, self.shape_, self._steps))
            return view._store(_fitting(value, view.shape_, self.dtype))
        places, shape = self._some(keys)
        for place, number in zip(places, _fitting(value, shape, self.dtype)):
            self._flat[place] = number

    def __len__(self):
        if not self.shape_:
            raise TypeError("len() of unsized object")
        return self.shape_[0]

    def __iter__(self):
        if not self.shape_:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape_[0]))

    def __contains__(self, number):
        return builtins.bool((self == number).any())

    # As Python's.

    def item(self, *at):
        if at:
            return self[at[0] if len(at) == 1 and self.ndim == 1 else at].item()
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._values()[0]

    def __bool__(self):
        if self.size > 1:
            raise ValueError("The truth value of an array with more than one element "
                             "is ambiguous. Use a.any() or a.all()")
        return builtins.any(self._values())

    def _only(self):
        if self.size != 1:
            raise TypeError("only size-1 arrays can be converted to Python scalars")
        return self._values()[0]

    def __float__(self):
        return float(self._only())

    def __int__(self):
        return int(self._only())

    def __index__(self):
        if self.shape_ or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar "
                            "index")
        return self._only()

    def __format__(self, how):
        return format(self.item(), how) if how else str(self)

    def tolist(self):
        if not self.shape_:
            return self.item()
        values = self._values()
        for axis in range(self.ndim - 1, 0, -1):
            n, count = self.shape_[axis], math.prod(self.shape_[:axis])
            values = [values[i * n : (i + 1) * n] for i in range(count)]
        return values

    def tobytes(self):
        import struct

        codes = {"float64": "d", "float32": "f", "float16": "e", "bool": "?",
                 "uint8": "B", "int8": "b", "int32": "i", "int64": "q", "int16": "h",
                 "uint16": "H", "uint32": "I", "uint64": "Q"}
        values = self._values()
        return struct.pack(f"<{len(values)}{codes[self.dtype.name]}", *values)

    def __repr__(self):
        kind = f", dtype={self.dtype}" if self.dtype.name not in (
            "float64", "int64", "bool") else ""
        return f"array({_text(self, ', ', 6)}{kind})"

    def __str__(self):
        return _text(self, " ", 0)

    # Copies and other shapes.

    def copy(self, order="C"):
        return _made(self._values(), self.shape_, self.dtype)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def astype(self, kind, copy=True):
        kind = dtype(kind)
        return _made(kind.cast(self._values()), self.shape_, kind)

    def view(self, kind=None):
        kind = type(self) if kind is None else kind
        if not (isinstance(kind, type) and issubclass(kind, ndarray)):
            raise TypeError("the small arrays of this page have no view of another "
                            f"type, here {kind!r}")
        found = self._view(self._first, self.shape_, self._steps)
        found.__class__ = kind
        return found

    def fill(self, value):
        self[...] = value

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        shape = [int(n) for n in shape]
        unknown = [i for i, n in enumerate(shape) if n < 0]
        if len(unknown) > 1:
            raise ValueError("can only specify one unknown dimension")
        for i in unknown:
            known = math.prod(shape[:i] + shape[i + 1 :])
            shape[i] = self.size // known if known else 0
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape "
                             f"{_tuple_text(shape)}")
        if self._in_order():
            return self._view(self._first, shape, indexing.c_steps(tuple(shape)))
        return _made(self._values(), shape, self.dtype)

    def ravel(self):
        return self.reshape(-1)

    def flatten(self):
        return self.copy().reshape(-1)

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        axes = [_axis(a, self.ndim) for a in axes or range(self.ndim)[::-1]]
        if sorted(axes) != [*range(self.ndim)]:
            raise ValueError("axes don't match array")
        return self._view(self._first, [self.shape_[a] for a in axes],
                          [self._steps[a] for a in axes])

    def swapaxes(self, a, b):
        axes = [*range(self.ndim)]
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(axes)

    def squeeze(self, axis=None):
        gone = [a for a in _axes(axis, self.ndim) if axis is not None
                or self.shape_[a] == 1]
        if builtins.any(self.shape_[a] != 1 for a in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not "
                             "equal to one")
        kept = [a for a in range(self.ndim) if a not in gone]
        return self._view(self._first, [self.shape_[i] for i in kept],
                          [self._steps[i] for i in kept])

    # What reduces.

    def _reduced(self, act, axis, keepdims, kind):
        axes = _axes(axis, self.ndim)
        kept = [i for i in range(self.ndim) if i not in axes]
        values = self.transpose([*kept, *axes])._values() if self.ndim else (
            self._values())
        n = math.prod(self.shape_[a] for a in axes)
        count = math.prod(self.shape_[i] for i in kept)
        found = kind.cast(act(values[i * n : (i + 1) * n]) for i in range(count))
        shape = [1 if i in axes else m for i, m in enumerate(self.shape_)
                 if keepdims or i in kept]
        return _made(found, shape, kind) if shape else scalar(found[0], kind)

    def sum(self, axis=None, dtype=None, *, keepdims=False):
        summands = self.astype(dtype) if dtype else self
        kind = summands.dtype if dtype else _of_sums(self.dtype)
        zero = 0.0 if kind.kind == "f" else 0
        return summands._reduced(lambda v: builtins.sum(v, zero), axis, keepdims, kind)

    def prod(self, axis=None, *, keepdims=False):
        return self._reduced(math.prod, axis, keepdims, _of_sums(self.dtype))

    def mean(self, axis=None, *, keepdims=False):
        kind = self.dtype if self.dtype.kind == "f" else dtype("float64")
        return self._reduced(lambda v: divided(builtins.sum(v), len(v)), axis, keepdims,
                             kind)

    def var(self, axis=None, *, keepdims=False):
        apart = self - self.mean(axis, keepdims=True)
        return (apart * apart).mean(axis, keepdims=keepdims)

    def std(self, axis=None, *, keepdims=False):
        return sqrt(self.var(axis, keepdims=keepdims))

    def max(self, axis=None, *, keepdims=False):
        return self._reduced(_most(builtins.max), axis, keepdims, self.dtype)

    def min(self, axis=None, *, keepdims=False):
        return self._reduced(_most(builtins.min), axis, keepdims, self.dtype)

    def any(self, axis=None, *, keepdims=False):
        return self._reduced(builtins.any, axis, keepdims, dtype("bool"))

    def all(self, axis=None, *, keepdims=False):
        return self._reduced(builtins.all, axis, keepdims, dtype("bool"))

    def argmax(self, axis=None):
        return self._reduced(lambda v: v.index(_most(builtins.max)(v)), axis, False,
                             dtype("int64"))

    def argmin(self, axis=None):
        return self._reduced(lambda v: v.index(_most(builtins.min)(v)), axis, False,
                             dtype("int64"))

    # And others.

    def cumsum(self, axis=None):
        from itertools import accumulate

        if axis is None or self.ndim == 1:
            _axes(axis, self.ndim)
            kind = _of_sums(self.dtype)
            sums = accumulate(kind.cast(self._values()),
                              lambda s, v: kind.cast([s + v])[0])
            return _made([*sums], (self.size,), kind)
        return _by_rows(lambda row: row.cumsum(), self, axis)

    def round(self, decimals=0):
        return _made(self.dtype.cast(round_(v, decimals) for v in self._values()),
                     self.shape_, self.dtype)

    def clip(self, low=None, high=None):
        found = self if low is None else maximum(self, low)
        return found if high is None else minimum(found, high)

    def take(self, places, axis=None):
        if axis is None:
            return self.ravel()[asarray(places)]
        return self[(slice(None),) * _axis(axis, self.ndim) + (asarray(places),)]

    def nonzero(self):
        at = [place for place, v in zip(product(*map(range, self.shape_)),
                                        self._values()) if v]
        return tuple(array([p[i] for p in at], "int64") for i in range(self.ndim))

    def repeat(self, times, axis=None):
        it = self.ravel() if axis is None else self
        return it.take([i for i in range(it.shape_[axis or 0]) for _ in range(times)],
                       axis or 0)

    def argsort(self, axis=-1, kind=None):
        if self.ndim == 1:
            _axis(axis, 1)
            values = self._values()
            return array(sorted(range(self.size), key=lambda i: _nan_last(values[i])),
                         "int64")
        return _by_rows(lambda row: row.argsort(), self, axis)

    def sort(self, axis=-1):
        if self.ndim == 1:
            _axis(axis, 1)
            self._store(sorted(self._values(), key=_nan_last))
        else:
            for row in moveaxis(self, axis, -1):
                row.sort()

    def dot(self, other):
        return dot(self, other)

    def tofile(self, *given):
        raise OSError("a page has no files")

    def __neg__(self):
        return _mapped(operator.neg, self, self.dtype)

    def __pos__(self):
        return self.copy()

    def __abs__(self):
        return absolute(self)

    def __invert__(self):
        act = operator.not_ if self.dtype.kind == "b" else operator.invert
        return _mapped(act, self, self.dtype)

    def __matmul__(self, other):
        return matmul(self, other)

    def __rmatmul__(self, other):
        return matmul(other, self)

    def __getattr__(self, name):
        raise AttributeError(f"the small arrays of this page have no {name!r}")


all_, round_ = builtins.all, builtins.round


def _most(act):
    def most(values):
        if not values:
            raise ValueError("zero-size array to reduction operation "
                             f"{act.__name__}imum which has no identity")
        return next((v for v in values if v != v), None) or act(values)

    return most


def _nan_last(v):
    return v != v, v


def _by_rows(act, x, axis):
    """Return `act` of each row of `x` along `axis`."""
    rows = moveaxis(x, axis, -1)
    found = stack([act(row) for row in rows.reshape(-1, rows.shape_[-1])])
    return moveaxis(found.reshape(rows.shape_), -1, axis)


def _indices(key):
    found = asarray(key)
    if found.dtype.kind == "f" and found.size:
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return found


def _tuple_text(shape):
    return f"({','.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _fitting(value, shape, kind):
    """Return `value`, broadcast to `shape`: a list of numbers of type `kind`."""
    if isinstance(value, (int, float)):
        return kind.cast([value]) * math.prod(shape)
    value = asarray(value)
    while value.ndim > len(shape) and value.shape_[0] == 1:
        value = value[0] if value.ndim > 1 else asarray(value.item())
    try:
        values = broadcast_to(value, shape)._values()
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {_tuple_text(value.shape_)} "
            f"into shape {_tuple_text(shape)}") from None
    return values if value.dtype is kind else kind.cast(values)


def _text(x, between, indent):
    words = _words([*map(x.dtype.shown, x._values())], x.dtype.kind)
    width = builtins.max(map(len, words), default=0)
    words = iter(w.rjust(width) for w in words)

    def part(shape, depth):
        if not shape:
            return next(words)
        inside = [part(shape[1:], depth + 1) for _ in range(shape[0])]
        comma = between.rstrip()
        ends = between if len(shape) == 1 else comma + "\n" * (len(shape) - 1) + (
            " " * (indent + depth + 1))
        return f"[{ends.join(inside)}]"

    return part(x.shape_, 0)


def _words(values, kind):
    if kind != "f":
        return [*map(str, values)]
    words = [f"{v:.8f}".rstrip("0") if math.isfinite(v) and (
        not v or 1e-4 <= builtins.abs(v) < 1e16) else str(v) for v in values]
    after = builtins.max((len(w.partition(".")[2]) for w in words if "e" not in w),
                         default=0)
    return [w + " " * (after - len(w.partition(".")[2])) if "." in w and "e" not in w
            else w for w in words]


# Operators.


class ufunc:
    """A function of single numbers, applied to all."""

    def __init__(self, name, act, kind=None, start=None):
        self.__name__, self.act, self.kind, self.start = name, act, kind, start

    def __call__(self, a, b, out=None):
        found = _paired(self.act, a, b, self.kind)
        if out is None:
            return found
        out[...] = found
        return out

    def reduce(self, values, axis=0):
        values = asarray(values)
        if axis is None:
            values, axis = values.ravel(), 0
        kind = self.kind or scalars.of(self.act, values.dtype)
        kind = _of_sums(kind) if self in (add, multiply) else kind
        parts = moveaxis(asarray(values, kind), axis, 0)
        if not len(parts) and self.start is None:
            raise ValueError("zero-size array to reduction operation "
                             f"{self.__name__} which has no identity")
        found = parts[0] if len(parts) else full(parts.shape_[1:], self.start, kind)[()]
        for part in parts[1:]:
            found = self(found, part)
        return found.copy() if isinstance(found, ndarray) else found

    def outer(self, a, b):
        a, b = asarray(a), asarray(b)
        return self(a.reshape(*a.shape_, *[1] * b.ndim), b)


def _paired(act, a, b, kind=None):
    for x in (a, b):
        if getattr(x, "__array_ufunc__", True) is None:
            raise TypeError(f"operand {type(x).__name__!r} does not support ufuncs")
    simple = [isinstance(x, (int, float)) for x in (a, b)]
    if simple == [True, True]:
        found = kind or _kind(a, b, True, True, act)
        return scalar(act(plain(a), plain(b)), found)
    a, b = (x if s else asarray(x) for x, s in zip((a, b), simple))
    alone = [s or not x.shape_ for x, s in zip((a, b), simple)]
    kind = kind or _kind(a, b, *alone, act)
    shape, values = _both(a, b)
    found = list(map(act, *values))
    if not kind.name == dtype_of(a).name == dtype_of(b).name == "float64":
        found = kind.cast(found)
    return _made(found, shape, kind) if shape else scalar(found[0], kind)


def _kind(a, b, alone_a, alone_b, act):
    one, two = dtype_of(a), dtype_of(b)
    if alone_a == alone_b:
        return scalars.of(act, promoted(one, two))
    single, its, many = (a, one, two) if alone_a else (b, two, one)
    return scalars.of(act, scalars.widened(many, plain(single), its))


def _both(a, b):
    """Return the result's shape, and the values of `a` and `b`, broadcast to it."""
    if not isinstance(a, ndarray):
        return b.shape_, (again(plain(a)), b._values())
    if not isinstance(b, ndarray):
        return a.shape_, (a._values(), again(plain(b)))
    if a.shape_ == b.shape_:
        return a.shape_, (a._values(), b._values())
    shape = broadcast_shapes(a.shape_, b.shape_)
    return shape, (broadcast_to(a, shape)._values(), broadcast_to(b, shape)._values())


def broadcast_shapes(*shapes):
    most = builtins.max(map(len, shapes))
    found = []
    for sizes in zip(*((1,) * (most - len(s)) + tuple(s) for s in shapes)):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            said = " ".join(map(_tuple_text, shapes))
            raise ValueError(f"operands could not be broadcast together with shapes "
                             f"{said} ")
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def broadcast_to(x, shape):
    x = asarray(x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if broadcast_shapes(x.shape_, shape) != shape:
        raise ValueError(f"operands could not be broadcast together with remapped "
                         f"shapes {x.shape_} and requested shape {shape}")
    steps = [0 if n == 1 else s for n, s in zip(x.shape_, x._steps)]
    return x._view(x._first, shape, [0] * (len(shape) - x.ndim) + steps)


def broadcast_arrays(*arrays):
    arrays = [*map(asarray, arrays)]
    shape = broadcast_shapes(*(x.shape_ for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


_bool = dtype("bool")
add = ufunc("add", operator.add, start=0.0)
subtract = ufunc("subtract", operator.sub)
multiply = ufunc("multiply", operator.mul, start=1.0)
divide = true_divide = ufunc("divide", divided)
floor_divide = ufunc("floor_divide", scalars.floor_divided)
mod = remainder = ufunc("remainder", scalars.remainder)
power = ufunc("power", scalars.power)
maximum = ufunc("maximum", lambda a, b: a if a >= b or a != a else b)
minimum = ufunc("minimum", lambda a, b: a if a <= b or a != a else b)
logaddexp = ufunc("logaddexp", scalars.log_of_both, start=-inf)
bitwise_and = ufunc("bitwise_and", operator.and_, start=-1)
bitwise_or = ufunc("bitwise_or", operator.or_, start=0)
bitwise_xor = ufunc("bitwise_xor", operator.xor, start=0)
left_shift = ufunc("left_shift", operator.lshift)
right_shift = ufunc("right_shift", operator.rshift)
logical_and = ufunc("logical_and", lambda a, b: builtins.bool(a and b), _bool, True)
logical_or = ufunc("logical_or", lambda a, b: builtins.bool(a or b), _bool, False)
arctan2 = ufunc("arctan2", math.atan2, dtype("float64"))
equal, not_equal = (ufunc(n, getattr(operator, n[:2] if n == "equal" else "ne"), _bool)
                    for n in ("equal", "not_equal"))
less, greater = (ufunc(n, getattr(operator, n[0] + "t"), _bool)
                 for n in ("less", "greater"))
less_equal, greater_equal = (ufunc(n, getattr(operator, n[0] + "e"), _bool)
                             for n in ("less_equal", "greater_equal"))


def _operators():
    named = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide,
             "floordiv": floor_divide, "mod": mod, "pow": power, "and": bitwise_and,
             "or": bitwise_or, "xor": bitwise_xor, "lshift": left_shift,
             "rshift": right_shift}
    for name, act in named.items():
        setattr(ndarray, f"__{name}__", _forward(act))
        setattr(ndarray, f"__r{name}__", _backward(act))
        setattr(ndarray, f"__i{name}__", _in_place(act))
    for name, act in {"eq": equal, "ne": not_equal, "lt": less, "gt": greater,
                      "le": less_equal, "ge": greater_equal}.items():
        setattr(ndarray, f"__{name}__", _forward(act))


def _known(other):
    return isinstance(other, (int, float, ndarray, list, tuple))


def _forward(act):
    return lambda self, other: act(self, other) if _known(other) else NotImplemented


def _backward(act):
    return lambda self, other: act(other, self) if _known(other) else NotImplemented


def _in_place(act):
    def changed(self, other):
        if not _known(other):
            return NotImplemented
        most = used.most
        found = act(self, other)
        used.most = most  # NumPy needs no second array
        if "buif".index(dtype_of(found).kind) > "buif".index(self.dtype.kind):
            raise TypeError(
                f"Cannot cast ufunc '{act.__name__}' output from {dtype_of(found)!r} "
                f"to {self.dtype!r} with casting rule 'same_kind'")
        if shape(found) != self.shape_:
            raise ValueError(
                f"non-broadcastable output operand with shape "
                f"{_tuple_text(self.shape_)} doesn't match the broadcast "
                f"shape {_tuple_text(shape(found))}")
        self._store(_fitting(found, self.shape_, self.dtype))
        return self

    return changed


_operators()


def _mapped(act, x, kind):
    if getattr(x, "__array_ufunc__", True) is None:
        raise TypeError(f"operand {type(x).__name__!r} does not support ufuncs")
    if isinstance(x, (int, float)):
        return scalar(act(x), kind)
    found = kind.cast(map(act, x._values()))
    return _made(found, x.shape_, kind) if x.shape_ else scalar(found[0], kind)


def _single(act, kind=None):
    """Return `act` for arrays; outside its domain NaN, at the edge minus infinity."""
    edge = -1 if act is math.log1p else 0

    def safe(v):
        try:
            return act(v)
        except OverflowError:
            return inf if v > 0 else -inf if act is math.sinh else 0.0
        except ValueError:
            return -inf if v == edge else nan

    def function(x, out=None):
        x = x if isinstance(x, (int, float, ndarray)) else asarray(x)
        its = kind or promoted(dtype_of(x), dtype("float16"))
        found = _mapped(safe, x, its)
        if out is None:
            return found
        out[...] = found
        return out

    return function


exp, log, log2, log10, sqrt, tanh, sin, cos, log1p, expm1 = map(_single, (
    math.exp, math.log, math.log2, math.log10, math.sqrt, math.tanh, math.sin, math.cos,
    math.log1p, math.expm1))
floor, ceil, trunc, rint = map(_single, (
    lambda v: float(math.floor(v)) if math.isfinite(v) else v,
    lambda v: float(math.ceil(v)) if math.isfinite(v) else v,
    lambda v: float(math.trunc(v)) if math.isfinite(v) else v,
    lambda v: float(round_(v)) if math.isfinite(v) else v))
isfinite, isnan, isinf, logical_not = (
    _single(act, kind=_bool)
    for act in (math.isfinite, math.isnan, math.isinf, operator.not_))


def _keeping(act):
    def function(x):
        x = x if isinstance(x, (int, float, ndarray)) else asarray(x)
        return _mapped(act, x, dtype_of(x))

    return function


absolute, negative = _keeping(operator.abs), _keeping(operator.neg)
square = _keeping(lambda v: v * v)
sign = _keeping(lambda v: v if v != v else (v > 0) - (v < 0))


# Making arrays.


def array(data, dtype=None, copy=True, ndmin=0):
    """Return a new array from numbers, lists of numbers, or arrays."""
    if isinstance(data, ndarray):
        found = data.astype(dtype) if dtype else data.copy()
    else:
        values, shape, kind = _read(data)
        kind = scalars.dtype(dtype) if dtype else kind
        found = _made(kind.cast(values), shape, kind)
    return found.reshape((1,) * (ndmin - found.ndim) + found.shape_) if ndmin else found


def _read(data):
    """Return (values, shape, type of numbers) of nested lists."""
    if isinstance(data, ndarray):
        return data._values(), data.shape_, data.dtype
    if isinstance(data, (int, float)):
        return [data], (), dtype_of(data)
    if not hasattr(data, "__len__") or isinstance(data, (str, bytes, dict, set)):
        raise TypeError(f"this page's NumPy has no arrays of {type(data).__name__}")
    if all_(type(v) is float for v in data):
        return [*data], (len(data),), dtype("float64")
    parts = [*map(_read, data)]
    shapes = {shape for _, shape, _ in parts}
    if len(shapes) > 1:
        raise ValueError("setting an array element with a sequence. The requested "
                         "array has an inhomogeneous shape")
    kind = parts[0][2]
    for _, _, other in parts:
        kind = promoted(kind, other)
    return [v for values, _, _ in parts for v in values], (
        len(parts), *shapes.pop()), kind


def _of_chance(values, shape=None, kind=None):
    found = array(values, kind)
    return found if shape is None else found.reshape(shape)


random.RandomState.make = staticmethod(_of_chance)


def asarray(data, dtype=None):
    if isinstance(data, ndarray) and (dtype is None or data.dtype == dtype):
        return data
    return array(data, dtype)


ascontiguousarray = asanyarray = asarray


def _shape(shape):
    return (int(shape),) if hasattr(shape, "__index__") else tuple(map(int, shape))


def full(shape, value, dtype=None):
    kind = scalars.dtype(dtype) if dtype else dtype_of(value)
    shape = _shape(shape)
    return _made(kind.cast([value]) * math.prod(shape), shape, kind)


def zeros(shape, dtype="float64"):
    return full(shape, 0.0, dtype)


def ones(shape, dtype="float64"):
    return full(shape, 1.0, dtype)


empty = zeros


def zeros_like(x, dtype=None):
    return full(shape(x), 0, dtype or dtype_of(asarray(x)))


def ones_like(x, dtype=None):
    return full(shape(x), 1, dtype or dtype_of(asarray(x)))


def full_like(x, value, dtype=None):
    return full(shape(x), value, dtype or dtype_of(asarray(x)))


empty_like = zeros_like


def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    kind = scalars.dtype(dtype) if dtype else (
        scalars.dtype("float64") if builtins.any(
            scalars.dtype_of(v).kind == "f" for v in (start, stop, step))
        else scalars.dtype("int64"))
    count = builtins.max(0, math.ceil((stop - start) / step))
    return _made(kind.cast(start + i * step for i in range(count)), (count,), kind)


def linspace(start, stop, num=50):
    step = (stop - start) / builtins.max(1, num - 1)
    last = [stop if num > 1 else start][:num]
    return array([start + i * step for i in range(num - 1)] + last, float)


def eye(n, m=None, k=0, dtype="float64"):
    m = n if m is None else m
    return (arange(n)[:, None] + k == arange(m)).astype(dtype)


def identity(n, dtype="float64"):
    return eye(n, dtype=dtype)


def tri(n, m=None, k=0, dtype="float64"):
    m = n if m is None else m
    return (arange(n)[:, None] + k >= arange(m)).astype(dtype)


def tril(x, k=0):
    x = asarray(x)
    return where(tri(*x.shape_[-2:], k=k), x, x.dtype.type(0))


def triu(x, k=0):
    x = asarray(x)
    return where(tri(*x.shape_[-2:], k=k - 1), x.dtype.type(0), x)


def tril_indices(n, k=0):
    return tri(n, n, k).nonzero()


def triu_indices(n, k=0):
    return (tri(n, n, k - 1) == 0).nonzero()


def meshgrid(a, b):
    a, b = asarray(a), asarray(b)
    return [broadcast_to(a, (b.size, a.size)).copy(),
            broadcast_to(b[:, None], (b.size, a.size)).copy()]


# Cutting and joining.


def split(x, parts, axis=0):
    x = asarray(x)
    if isinstance(parts, int) and x.shape_[axis] % parts:
        raise ValueError("array split does not result in an equal division")
    return array_split(x, parts, axis)


def array_split(x, parts, axis=0):
    x = asarray(x)
    axis = _axis(axis, x.ndim)
    n = x.shape_[axis]
    if isinstance(parts, int):
        sizes = [n // parts + (i < n % parts) for i in range(parts)]
        ends = [builtins.sum(sizes[: i + 1]) for i in range(parts - 1)]
    else:
        ends = [int(p) for p in parts]
    edges = zip([0, *ends], [*ends, n])
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in edges]


def vsplit(x, parts):
    return split(x, parts, 0)


def hsplit(x, parts):
    return split(x, parts, 1 if asarray(x).ndim > 1 else 0)


def concatenate(arrays, axis=0):
    arrays = [*map(asarray, arrays)]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [x.ravel() for x in arrays], 0
    if not arrays[0].shape_:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis, kind = _axis(axis, arrays[0].ndim), arrays[0].dtype
    for x in arrays:
        if _without(x.shape_, axis) != _without(arrays[0].shape_, axis):
            raise ValueError("all the input array dimensions except for the "
                             "concatenation axis must match exactly")
        kind = promoted(kind, x.dtype)
    whole = [*arrays[0].shape_]
    whole[axis] = builtins.sum(x.shape_[axis] for x in arrays)
    found, at = zeros(whole, kind), 0
    for x in arrays:
        end = at + x.shape_[axis]
        found[(slice(None),) * axis + (slice(at, end),)] = x
        at = end
    return found


def _without(sizes, axis):
    return [*sizes[:axis], *sizes[axis + 1 :]]


def stack(arrays, axis=0):
    arrays = [*map(asarray, arrays)]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({x.shape_ for x in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = _axis(axis, arrays[0].ndim + 1)
    return concatenate([x[(slice(None),) * axis + (None,)] if x.ndim else x.reshape(1)
                        for x in arrays], axis)


def vstack(arrays):
    return concatenate([x if asarray(x).ndim > 1 else asarray(x).reshape(1, -1)
                        for x in arrays])


def hstack(arrays):
    arrays = [asarray(x) if shape(x) else asarray(x).reshape(1) for x in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def append(x, values):
    return concatenate([asarray(x).ravel(), asarray(values).ravel()])


def roll(x, by, axis=None):
    if axis is None:
        return roll(x.ravel(), by, 0).reshape(x.shape_)
    n = x.shape_[axis]
    return x.take([(i - by) % n for i in range(n)], axis)


def flip(x, axis=None):
    x = asarray(x)
    axes = _axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1 if a in axes else 1) for a in range(x.ndim))]


def tile(x, times):
    x = asarray(x)
    times = (times,) if isinstance(times, int) else tuple(times)
    times = (1,) * (x.ndim - len(times)) + times
    x = x.reshape((1,) * (len(times) - x.ndim) + x.shape_)
    for axis, n in enumerate(times):
        x = concatenate([x] * n, axis)
    return x


def moveaxis(x, source, target):
    source = _axis(source, x.ndim)
    axes = [i for i in range(x.ndim) if i != source]
    axes.insert(_axis(target, x.ndim), source)
    return x.transpose(axes)


def expand_dims(x, axis):
    x = asarray(x)
    return x[(slice(None),) * _axis(axis, x.ndim + 1) + (None,)]


def pad(x, widths):
    widths = [(widths, widths)] * x.ndim if isinstance(widths, int) else widths
    widths = [widths] * x.ndim if isinstance(widths[0], int) else widths
    found = zeros([n + a + b for n, (a, b) in zip(x.shape_, widths)], x.dtype)
    found[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape_, widths))] = x
    return found


# Asking.


def shape(x):
    return tuple(x.shape) if hasattr(x, "shape") else asarray(x).shape_


def size(x):
    return math.prod(shape(x))


def ndim(x):
    return len(shape(x))


def where(condition, a=None, b=None):
    if a is None:
        return asarray(condition).nonzero()
    a, b = _given(a), _given(b)
    kind = _kind(a, b, not shape(a), not shape(b), None)
    c, a, b = broadcast_arrays(condition, a, b)
    found = [y if x else z for x, y, z in zip(c._values(), a._values(), b._values())]
    return _made(kind.cast(found), c.shape_, kind)


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    def close(x, y):
        if x != x or y != y:
            return equal_nan and x != x and y != y
        return x == y or math.isfinite(y) and builtins.abs(x - y) <= atol + (
            rtol * builtins.abs(y))

    return _paired(close, _given(a), _given(b), _bool)


def _given(x):
    return x if isinstance(x, (int, float, ndarray)) else asarray(x)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    found = isclose(a, b, rtol, atol, equal_nan)
    return builtins.bool(found.all() if isinstance(found, ndarray) else found)


def array_equal(a, b, equal_nan=False):
    a, b = asarray(a), asarray(b)
    return a.shape_ == b.shape_ and all_(
        x == y or equal_nan and x != x and y != y
        for x, y in zip(a._values(), b._values()))


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    top = {"float32": 3.4028234663852886e38, "float16": 65504.0}.get(
        dtype_of(asarray(x)).name, 1.7976931348623157e308)
    high, low = (top if posinf is None else posinf, -top if neginf is None else neginf)
    return _mapped(lambda v: nan if v != v else high if v == inf else low if v == -inf
                   else v, asarray(x), dtype_of(asarray(x)))


def unique(x):
    x = asarray(x)
    numbers = {v for v in x._values() if v == v}
    found = sorted(numbers) + [nan] * isnan(x).any()
    return _made(found, (len(found),), x.dtype)


def bincount(x, minlength=0):
    values = asarray(x)._values()
    count = builtins.max([minlength, *(v + 1 for v in values)])
    return array([values.count(i) for i in range(count)], "int64")


def searchsorted(x, value):
    from bisect import bisect_left

    return bisect_left(asarray(x)._values(), value)


def flatnonzero(x):
    return asarray(x).ravel().nonzero()[0]


def count_nonzero(x):
    return builtins.sum(map(builtins.bool, asarray(x)._values()))


def ndindex(*shape):
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return product(*map(range, shape))


def diff(x):
    x = asarray(x)
    act = not_equal if x.dtype.kind == "b" else subtract
    return act(x[..., 1:], x[..., :-1])


def _method(name):
    def function(x, *given, **named):
        return getattr(asarray(x), name)(*given, **named)

    function.__name__ = name
    return function


for _name in [
    "sum", "prod", "mean", "var", "std", "max",
    "min", "any", "all", "argmax", "argmin", "cumsum",
    "clip", "take", "nonzero", "repeat", "argsort", "round",
    "squeeze", "ravel", "transpose", "swapaxes", "reshape",
]:
    globals()[_name] = _method(_name)
amax, amin, around = (globals()[name] for name in ("max", "min", "round"))
abs = absolute


def copy(x):
    return array(x)


def sort(x, axis=-1):
    found = array(x)
    found.sort(axis)
    return found


def copyto(into, x):
    into[...] = x


# Products.


def matmul(a, b):
    a, b = asarray(a), asarray(b)
    for x in (a, b):
        if x.__array_ufunc__ is None:
            raise TypeError(f"operand {type(x).__name__!r} does not support ufuncs")
    if not a.shape_ or not b.shape_:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    row, column = a.ndim == 1, b.ndim == 1
    a, b = a[None] if row else a, b[:, None] if column else b
    if a.shape_[-1] != b.shape_[-2]:
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with "
            f"gufunc signature (n?,k),(k,m?)->(n?,m?) (size {b.shape_[-2]} is "
            f"different from {a.shape_[-1]})")
    found = _products(a, b)
    found = found[..., 0, :] if row else found
    return found[..., 0] if column else found


def _products(a, b):
    many = broadcast_shapes(a.shape_[:-2], b.shape_[:-2])
    n, k, m = *a.shape_[-2:], b.shape_[-1]
    kind = promoted(a.dtype, b.dtype)
    ones_, twos = (broadcast_to(x, (*many, *x.shape_[-2:])) for x in (a, b))
    rows, columns = ones_._values(), twos.swapaxes(-1, -2)._values()
    zero, found = (0.0 if kind.kind == "f" else 0), []
    for at in range(math.prod(many)):
        there = [columns[(at * m + j) * k : (at * m + j + 1) * k] for j in range(m)]
        for i in range(n):
            row = rows[(at * n + i) * k : (at * n + i + 1) * k]
            found += [builtins.sum(map(operator.mul, row, c), zero) for c in there]
    return _made(kind.cast(found), (*many, n, m), kind)


def dot(a, b):
    if ndim(a) == 0 or ndim(b) == 0:
        return multiply(a, b)
    b = asarray(b)
    if b.ndim < 3:
        return matmul(a, b)
    rows = moveaxis(b, -2, 0)  # each with all columns of `a`
    found = matmul(a, rows.reshape(rows.shape_[0], -1))
    return found.reshape(*shape(a)[:-1], *rows.shape_[1:])


def outer(a, b):
    return multiply.outer(ravel(a), ravel(b))  # noqa: F821 - made above


def inner(a, b):
    b = asarray(b)
    return dot(a, b.swapaxes(-1, -2) if ndim(a) and b.ndim > 1 else b)


def polyfit(x, y, degree):
    x = asarray(x)
    rows = stack([x**n * 1.0 for n in range(degree, -1, -1)], axis=1)
    return linalg.lstsq(rows, y)[0]


class linalg:
    """Norms, and least squares by orthogonal columns."""

    @staticmethod
    def norm(x, ord=None, axis=None, keepdims=False):
        if ord is not None:
            raise NotImplementedError("the small NumPy of this page has only the norm "
                                      "without `ord`: the root of the sum of squares")
        x = asarray(x) * 1.0
        return sqrt((x * x).sum(axis, keepdims=keepdims))

    @staticmethod
    def lstsq(a, b, rcond=None):
        a, b = array(a, float), array(b, float)
        columns, count = [*a.T], a.shape_[1]
        basis, R = [], zeros((count, count))
        for j, column in enumerate(columns):
            column = column.copy()
            for _ in range(2):  # once more, for what rounding left
                for i, known in enumerate(basis):
                    part = known @ column
                    R[i, j] += part
                    column -= part * known
            R[j, j] = linalg.norm(column)
            basis.append(column / R[j, j])
        found = zeros(count)
        for j in reversed(range(count)):
            rest = basis[j] @ b - R[j, j + 1 :] @ found[j + 1 :]
            found[j] = rest / R[j, j]
        return found, None, count, None


@contextmanager
def errstate(**given):
    """Do nothing: an overflow gives infinity here, without a warning."""
    yield


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"the small NumPy of this page has no {name!r}")


float, int, bool = builtins.float, builtins.int, builtins.bool
