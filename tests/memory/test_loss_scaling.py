"""The factor of the loss: halved at an overflow on any device, doubled later on."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np, npx

from d2l_ext.devices import try_all_devices
from d2l_ext.memory.loss_scaling import LossScaler, all_finite

npx.set_np()


@pytest.mark.parametrize("where", [0, 1])
def test_an_overflow_on_any_device_leaves_out_that_step_on_all(where):
    devices, scaler = try_all_devices(2), LossScaler(8.0, every=3)
    weights = [np.zeros(2, ctx=d) for d in devices]
    seen = []
    for step in range(8):
        grads = [np.ones(2, ctx=d) * scaler.scale for d in devices]
        if step == 2:
            grads[where][1] = numpy.inf
        scale = scaler.check([[g] for g in grads])
        for w, g in zip(weights, grads) if scale else ():
            w -= g / scale
        seen.append((float(weights[0][0]), scaler.scale))
        assert weights[0].tolist() == weights[1].tolist()
    assert [w for w, _ in seen] == [-1, -2, -2, -3, -4, -5, -6, -7]
    assert [s for _, s in seen] == [8, 8, 4, 4, 4, 8, 8, 8] and scaler.skipped == 1


@pytest.mark.parametrize("where, value, finite", [
    (0, 1, True), (0, numpy.inf, False), (401, -numpy.inf, False), (9, numpy.nan, False)
])
def test_all_gradients_are_looked_at_however_many_and_of_whatever_dtype(
    where, value, finite
):
    """MXNet's operator takes arrays of one dtype, and crashes on more than 200."""
    grads = [np.ones(2, dtype="float16"), *(np.ones(2) for _ in range(401))]
    grads[where][1] = value
    assert all_finite([[], grads]) is finite


def test_a_scale_of_1_cannot_fall_and_wrong_settings_are_refused():
    scaler = LossScaler(1.5)
    assert scaler.check([[np.array([numpy.nan])]]) == 0 and scaler.scale == 1
    with pytest.raises(FloatingPointError, match="at a scale of 1: no scale helps"):
        LossScaler(1.0).check([[np.array([numpy.inf])]])
    for wrong in ({"scale": 0.5}, {"every": 0}, {"scale": 2.0**25}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LossScaler(**wrong)
