"""What the tests of several modules share."""

import pytest


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
