"""Types of numbers as NumPy has them, and single numbers of these types."""
# ruff: noqa: PLR0124 - only a NaN differs from itself

import math
import operator
import struct
from array import array as packed

#: name: kind, bytes. Of one kind, earlier ones become later ones where both meet.
KINDS = {
    "bool": ("b", 1), "uint8": ("u", 1), "int8": ("i", 1), "int16": ("i", 2),
    "int32": ("i", 4), "int64": ("i", 8), "uint16": ("u", 2), "uint32": ("u", 4),
    "uint64": ("u", 8), "float16": ("f", 2), "float32": ("f", 4), "float64": ("f", 8),
}
ALIASES = {"float": "float64", "int": "int64", "bool_": "bool", "double": "float64",
           "single": "float32", "half": "float16", "f8": "float64", "f4": "float32",
           "f2": "float16", "i8": "int64", "i4": "int32", "u1": "uint8", "d": "float64",
           "f": "float32", "e": "float16", "ubyte": "uint8", "int_": "int64"}


class dtype:
    """A type of numbers, by its name, its class, or Python's `float`, `int`, `bool`."""

    _made = {}  # noqa: RUF012 - shared on purpose

    def __new__(cls, what="float64"):
        if isinstance(what, dtype):
            return what
        if getattr(what, "dtype", None).__class__ is dtype:
            return what.dtype
        what = "float64" if what is None else what
        name = what if isinstance(what, str) else getattr(what, "__name__", None)
        if name is None:
            raise TypeError(f"Cannot interpret '{what!r}' as a data type")
        name = ALIASES.get(name.lstrip("<>=|"), name.lstrip("<>=|"))
        if name not in KINDS:
            raise TypeError(f"data type {what!r} not understood")
        if name not in cls._made:
            made = cls._made[name] = object.__new__(cls)
            made.name, (made.kind, made.itemsize) = name, KINDS[name]
        return cls._made[name]

    def __eq__(self, other):
        try:
            return self is dtype(other)
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"dtype('{self.name}')"

    def __str__(self):
        return self.name

    def __deepcopy__(self, memo):
        return self

    @property
    def type(self):
        return SCALARS[self.name]

    def cast(self, values):
        """Return the values as numbers of this type, a list of Python's."""
        if self.name == "float64":
            return [*map(float, values)]
        if self.kind == "b":
            return [*map(bool, values)]
        if self.name == "float32":
            return packed("f", map(float, values)).tolist()
        if self.name == "float16":
            return [*map(_half, values)]
        if self.name == "int64":
            return [*map(int, values)]
        bits = 8 * self.itemsize
        low = 0 if self.kind == "u" else -(1 << bits - 1)
        return [(int(v) - low) % (1 << bits) + low for v in values]

    def shown(self, value):
        """Return the float of the fewest digits that is `value` in this type."""
        if self.kind != "f" or self.itemsize == 8:
            return value
        tried = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        return next((v for v in tried if self.cast([v])[0] == value), value)


def _half(value):
    try:
        return struct.unpack("e", struct.pack("e", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def promoted(a, b):
    """Return the type of the result of an operation on two types."""
    if a is b:
        return a
    if a.kind != "f" and b.kind == "f":
        a, b = b, a
    if a.kind == "f" and b.kind != "f":
        needed = {1: 2, 2: 4}.get(b.itemsize, 8)
        return dtype(f"float{8 * max(a.itemsize, needed)}")
    if {a.kind, b.kind} == {"i", "u"}:
        bits = 8 * max(x.itemsize * (1 + (x.kind == "u")) for x in (a, b))
        return dtype(f"int{bits}" if bits <= 64 else "float64")
    names = [*KINDS]
    return dtype(max(a.name, b.name, key=names.index))


def widened(kind, value, its):
    """Return the type of numbers of type `kind` with a single `value` of type `its`.

    Only a single number of a higher kind, or one that does not fit, gives a wider type.
    """
    ranks = {"b": 0, "i": 1, "u": 1, "f": 2}
    if kind is its or ranks[its.kind] > ranks[kind.kind]:
        return promoted(kind, its)
    like = its.kind
    if like in "iu":
        like = "i" if value < 0 or kind.kind == "i" else "u"
    for small in [dtype(name) for name in KINDS if KINDS[name][0] == like]:
        found = small.cast([value])[0]
        if found == value or like == "f" and not math.isinf(found):
            return promoted(kind, small)
    return promoted(kind, its)


def of(act, kind):
    """Return the type of the results of `act` on numbers of type `kind`."""
    if kind.kind == "b" and act is operator.sub:
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported, "
                        "use the bitwise_xor, the `^` operator, or the logical_xor "
                        "function instead.")
    if act is log_of_both:
        return promoted(kind, dtype("float16"))
    return dtype("float64") if act is divided and kind.kind != "f" else kind


def dtype_of(value):
    """Return the type of a single number."""
    if hasattr(value, "dtype"):
        return value.dtype
    return dtype("bool" if isinstance(value, bool) else
                 "int64" if isinstance(value, int) else "float64")


def plain(value):
    """Return a single number as Python's."""
    return value.item() if hasattr(value, "dtype") else value


def divided(a, b):
    """Return a / b by the rules of IEEE 754, without an error."""
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if not a or a != a else math.copysign(math.inf, a) * (
            math.copysign(1.0, b))


def careful(act):
    """Return `act`, `floordiv` or `mod`, with NumPy's results of a division by 0."""
    def careful(a, b):
        try:
            return act(a, b)
        except ZeroDivisionError:
            if isinstance(a, int) and isinstance(b, int):
                return 0
            return divided(a, b) if act is operator.floordiv else math.nan

    return careful


floor_divided, remainder = careful(operator.floordiv), careful(operator.mod)


def power(a, b):
    if isinstance(a, int) and isinstance(b, int) and b < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    try:
        found = a**b
        return math.nan if isinstance(found, complex) else found
    except OverflowError:
        return math.inf if a > 0 or b % 2 == 0 else -math.inf
    except ZeroDivisionError:
        return math.inf


def log_of_both(a, b):
    """Return log(exp(a) + exp(b))."""
    if a != a or b != b:
        return math.nan
    most = max(a, b)
    if a == b or math.isinf(most):
        return most + math.log(2) * math.isfinite(most)
    return most + math.log1p(math.exp(-abs(a - b)))


class _Number:
    shape, ndim, size, T = (), 0, 1, property(lambda self: self)

    def __class_getitem__(cls, item):
        return cls

    def item(self):
        return self._python(self)

    tolist = item

    def copy(self):
        return self

    def __deepcopy__(self, memo):
        return self

    __copy__ = copy

    def __format__(self, how):
        return format(self.item(), how)

    def astype(self, kind):
        return scalar(self, dtype(kind))

    def round(self, decimals=0):
        return scalar(round(self._python(self), decimals), self.dtype)

    def _same(self, *given, **named):
        return self

    sum = max = min = mean = _same

    def any(self, *given, **named):
        return bool_(self)

    all = any

    @property
    def nbytes(self):
        return self.dtype.itemsize

    itemsize = nbytes


def _operator(act, other_first):
    def method(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        kind = of(act, promoted(self.dtype, dtype_of(other)))
        one, two = self.item(), plain(other)
        return scalar(act(two, one) if other_first else act(one, two), kind)

    return method


def _comparison(act):
    def method(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        return bool_(act(self.item(), plain(other)))

    return method


def _logical(act):
    def method(self, other):
        if isinstance(other, (bool, bool_)):
            return bool_(act(bool(self), bool(other)))
        if isinstance(other, int):
            return scalar(act(int(self), int(other)), dtype_of(other))
        return NotImplemented

    return method


def _type(name):
    kind, _ = KINDS[name]
    # A Boolean is no `int`: `True & x` would be `int`'s, and not come here.
    python = float if kind in "fb" else int
    body = {"_python": bool if kind == "b" else python, "__slots__": ()}
    for op, act in (("add", operator.add), ("sub", operator.sub),
                    ("mul", operator.mul), ("truediv", divided), ("pow", power),
                    ("floordiv", floor_divided), ("mod", remainder)):
        body[f"__{op}__"], body[f"__r{op}__"] = (
            _operator(act, False), _operator(act, True))

    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        body[f"__{op}__"] = _comparison(getattr(operator, op))
    body["__hash__"] = python.__hash__

    def new(cls, value=0):
        return python.__new__(cls, cls.dtype.cast([value])[0])

    for op in ("neg", "pos", "abs"):
        act = getattr(operator, op)
        body[f"__{op}__"] = lambda self, act=act: scalar(act(self._python(self)),
                                                         self.dtype)
    body["__new__"] = new
    body["__repr__"] = lambda self: repr(self.dtype.shown(self.item()))
    body["__str__"] = body["__repr__"]
    body["__reduce__"] = lambda self: (type(self), (self._python(self),))
    if kind == "b":
        body["__invert__"] = lambda self: bool_(not self)
        for op in ("and", "or", "xor"):
            act = getattr(operator, f"__{op}__")
            body[f"__{op}__"] = body[f"__r{op}__"] = _logical(act)
        body["__index__"] = lambda self: int(bool(self))
    made = type(name if name != "bool" else "bool_", (_Number, python), body)
    made.dtype = dtype(name)
    return made


SCALARS = {}
SCALARS.update({name: _type(name) for name in KINDS})
bool_ = SCALARS["bool"]


def scalar(value, kind):
    return SCALARS[kind.name](value)
