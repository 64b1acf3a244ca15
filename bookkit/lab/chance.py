"""NumPy's legacy random numbers: those of `RandomState(seed)`, one by one the same.

Bounds, `loc` and `scale` are single numbers. `randint` gives NumPy's numbers for types
of 32 and 64 bits; for shorter ones, others in the same range.
"""

import math
import operator
import random as _python


class RandomState:
    #: Makes an array of values, perhaps a shape and a type; `arrays` gives it.
    make = None

    def __init__(self, seed=None):
        if seed is None:
            seed = _python.SystemRandom().getrandbits(32)
        state = [operator.index(seed)]
        if not 0 <= seed < 1 << 32:
            raise ValueError("Seed must be between 0 and 2**32 - 1")
        for i in range(1, 624):
            last = state[-1]
            state.append(1812433253 * (last ^ last >> 30) + i & 0xFFFFFFFF)
        self._source, self._kept = _python.Random(), None
        self._source.setstate((3, (*state, 624), None))

    def _shaped(self, size, one, kind="float64"):
        if size is None:
            return one()
        size = (size,) if isinstance(size, int) else tuple(size)
        return self.make([one() for _ in range(math.prod(size))], size, kind)

    @staticmethod
    def _alone(**given):
        for name, value in given.items():
            if not isinstance(value, (int, float)):
                raise TypeError(
                    f"here `{name}` must be a single number, not {value!r}: draw with "
                    "`size`, and multiply by or add an array")

    def _normal(self):
        if self._kept is not None:
            found, self._kept = self._kept, None
            return found
        square = 0
        while not 0 < square < 1:
            x, y = (2 * self._source.random() - 1 for _ in range(2))
            square = x * x + y * y
        factor = math.sqrt(-2 * math.log(square) / square)
        self._kept = factor * x
        return factor * y

    def _below(self, most):
        """Return a whole number from 0 to `most`."""
        if not most:
            return 0
        draw, mask = self._source.getrandbits, (1 << most.bit_length()) - 1
        while True:
            found = draw(32) << 32 | draw(32) if most >> 32 else draw(32)
            if found & mask <= most:
                return found & mask

    def randn(self, *shape):
        return self._shaped(shape or None, self._normal)

    def standard_normal(self, size=None):
        return self._shaped(size, self._normal)

    def normal(self, loc=0.0, scale=1.0, size=None):
        self._alone(loc=loc, scale=scale)
        return self._shaped(size, lambda: loc + scale * self._normal())

    def rand(self, *shape):
        return self._shaped(shape or None, self._source.random)

    def random_sample(self, size=None):
        return self._shaped(size, self._source.random)

    random = random_sample

    def uniform(self, low=0.0, high=1.0, size=None):
        self._alone(low=low, high=high)
        return self._shaped(size, lambda: low + (high - low) * self._source.random())

    def randint(self, low, high=None, size=None, dtype="int64"):
        low, high = (0, low) if high is None else (low, high)
        self._alone(low=low, high=high)
        if low >= high:
            raise ValueError("low >= high")
        return self._shaped(size, lambda: int(low) + self._below(int(high - low - 1)),
                            dtype)

    def shuffle(self, x):
        order = [*range(len(x))]
        for i in order[:0:-1]:
            j = self._below(i)
            order[i], order[j] = order[j], order[i]
        x[:] = [x[i] for i in order]  # rows of an array are views: not one by one

    def permutation(self, x):
        given = (range(x), (x,), "int64") if isinstance(x, int) else (x,)
        found = self.make(*given)
        self.shuffle(found)
        return found


_shared = RandomState()
seed = lambda number=None: _shared.__init__(number)
randn, rand, randint = _shared.randn, _shared.rand, _shared.randint
normal, uniform, shuffle = _shared.normal, _shared.uniform, _shared.shuffle
permutation, random = _shared.permutation, _shared.random
