"""Loss scaling: gradients too small for half precision, carried by a large factor.

float16 has no number between 0 and 2⁻²⁴. A loss multiplied by S has gradients S times
as large; they are divided by S in single precision, just before the update. S is as
large as possible without a gradient beyond 65,504, which becomes infinite: then the
step is skipped, and S is halved.
"""

from itertools import groupby

from mxnet import nd

from ..checks import whole_number


def all_finite(gradients):
    """Return whether all numbers in the arrays are finite, on whatever devices. Waits.

    `gradients`: a list of lists, one per device, of floating-point arrays. A float64
    counts as infinite where it is beyond float32.
    """
    found = []
    for grads in gradients:
        for _, group in groupby(grads, key=lambda g: g.dtype):
            same = [g.as_nd_ndarray() for g in group]
            for i in range(0, len(same), 200):  # MXNet crashes on more arrays than that
                some = same[i : i + 200]
                found.append(nd.multi_all_finite(*some, num_arrays=len(some)))
    return all(float(x.asscalar()) for x in found)


class LossScaler:
    """A factor for the loss that adjusts itself.

        scaler = LossScaler()
        (loss * scaler.scale).backward()      # on every device
        if factor := scaler.check(gradients): # of all devices
            …                                 # divide by factor; update

    `scale`: the initial factor, a power of two, so that no digit is lost. It is halved
    when a gradient is not finite, and doubled after `every` consecutive finite steps.
    `skipped`: the number of steps skipped so far.

    Raises `ValueError` for a `scale` outside 1 to `LARGEST`, and an `every` below 1.
    Source: Micikevicius et al. (2018); the defaults are those of MXNet's `amp`.
    """

    LARGEST = 2.0**24

    def __init__(self, scale=2.0**16, every=2000):
        if not 1 <= scale <= self.LARGEST:
            raise ValueError(f"scale must be 1 to {self.LARGEST:,.0f}, not {scale!r}")
        whole_number("every", every)
        self.scale, self.every, self.skipped, self._good = scale, every, 0, 0

    def check(self, gradients):
        """Return the divisor of the gradients after backward, or 0 to skip the step.

        `gradients`: a list of lists, of all devices: if only one device skipped a
        step, the replicas would differ. Adjusts `scale` for the steps that follow.
        Waits. Raises `FloatingPointError` when the scale is 1 and a gradient is still
        not finite: no scale helps.
        """
        used = self.scale
        if all_finite(gradients):
            self._good = (self._good + 1) % self.every
            if not self._good:
                self.scale = min(2 * used, self.LARGEST)
            return used
        if used == 1:
            raise FloatingPointError(
                "a gradient is infinite or NaN at a scale of 1: no scale helps. Is the "
                "learning rate too large, or a weight NaN already?"
            )
        self._good, self.skipped = 0, self.skipped + 1
        self.scale = max(used / 2, 1.0)
        return 0
