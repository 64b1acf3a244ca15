"""Arrays on devices, for a page without MXNet: reading one is a wait, and counted.

It has what exercises on waits need: an operator refuses arrays of two devices, and
reads are counted, as by `blocking_calls`.
"""

from contextlib import contextmanager

from . import arrays

_open = []


class MXNetError(RuntimeError):
    """Two devices in one operator."""


class Context:
    def __init__(self, device_type="cpu", device_id=0):
        self.device_type, self.device_id = device_type, device_id

    def __eq__(self, other):
        return str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __repr__(self):
        return f"{self.device_type}({self.device_id})"


def cpu(device_id=0):
    return Context("cpu", device_id)


def try_all_devices(number=2):
    return [cpu(i) for i in range(number)]


class ndarray:
    """An array of a device; `float(x)`, `x.asnumpy()` and others wait for it."""

    __hash__ = object.__hash__

    def __init__(self, numbers, ctx):
        self._numbers, self.ctx = arrays.asarray(numbers, "float32"), ctx

    device = context = property(lambda self: self.ctx)
    shape = property(lambda self: self._numbers.shape)
    size = property(lambda self: self._numbers.size)
    ndim = property(lambda self: self._numbers.ndim)
    dtype = property(lambda self: self._numbers.dtype)

    def __len__(self):
        return len(self._numbers)

    def as_in_ctx(self, ctx):
        return self if ctx == self.ctx else self.copyto(ctx)

    as_in_context = to_device = as_in_ctx

    def copyto(self, to):
        if isinstance(to, Context):
            return ndarray(self._numbers.copy(), to)
        to._numbers[...] = self._numbers
        return to

    def copy(self):
        return self.copyto(self.ctx)

    def __deepcopy__(self, memo):
        return self.copy()

    def __getitem__(self, key):
        return ndarray(self._numbers[key], self.ctx)

    def __setitem__(self, key, value):
        self._numbers[key] = self._of(value)

    def _of(self, other):
        if not isinstance(other, ndarray):
            return other
        if other.ctx != self.ctx:
            raise MXNetError(f"an operator on {self.ctx} got an array on {other.ctx}: "
                             "copy it there with as_in_ctx")
        return other._numbers

    def _read(self):
        for waits in _open:
            waits.append(self)
        return self._numbers

    def asnumpy(self):
        return self._read().copy()

    def item(self):
        return self._read().item()

    def tolist(self):
        return self._read().tolist()

    def wait_to_read(self):
        self._read()

    def __float__(self):
        return float(self._read())

    def __int__(self):
        return int(self._read())

    def __bool__(self):
        return bool(self._read())

    def __repr__(self):
        return repr(self._read())

    def __format__(self, how):
        return format(self.item(), how)


def _forward(name):
    def method(self, *others, **named):
        found = getattr(self._numbers, name)(*map(self._of, others), **named)
        return found if found is NotImplemented else ndarray(found, self.ctx)

    return method


def _in_place(name):
    def method(self, other):
        getattr(self._numbers, name)(self._of(other))
        return self

    return method


for _name in ("add", "sub", "mul", "truediv", "pow"):
    for _side in ("__{}__", "__r{}__"):
        setattr(ndarray, _side.format(_name), _forward(_side.format(_name)))
    setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in ("__eq__", "__ne__", "__lt__", "__gt__", "__neg__", "sum", "mean", "max",
              "reshape", "__matmul__"):
    setattr(ndarray, _name, _forward(_name))


class np:
    ndarray = ndarray

    @staticmethod
    def array(data, dtype=None, ctx=None):
        return ndarray(arrays.array(data, "float32"), ctx or cpu())

    @staticmethod
    def zeros(shape, dtype=None, ctx=None):
        return ndarray(arrays.zeros(shape, "float32"), ctx or cpu())

    @staticmethod
    def ones(shape, dtype=None, ctx=None):
        return ndarray(arrays.ones(shape, "float32"), ctx or cpu())


class npx:
    @staticmethod
    def set_np():
        """Do nothing: arrays have NumPy's shapes here."""

    @staticmethod
    def waitall():
        for waits in _open:
            waits.append(None)


@contextmanager
def blocking_calls():
    """Yield a list that gets an entry for each wait inside."""
    waits = []
    _open.append(waits)
    try:
        yield waits
    finally:
        _open.pop()
