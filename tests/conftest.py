"""What the tests of several modules share."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# A machine that stalls for a moment is no fault of what is tested.
slow = [HealthCheck.too_slow]
settings.register_profile("any machine", deadline=None, suppress_health_check=slow)
settings.load_profile("any machine")

# Whoever starts the tests in the background may have switched Control-C off, for all
# processes that they start as well; and some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def without_numpy_semantics():
    """MXNet's older interface, `mx.nd`, refuses what other tests switch on."""
    import d2l_ext  # noqa: F401, I001  (before mxnet)
    from mxnet import npx, util

    active = util.is_np_array()
    npx.reset_np()
    yield
    if active:
        npx.set_np()
