"""What the tests of several modules share."""

import gc
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that stalls for a moment is no fault of what is tested.
slow = [HealthCheck.too_slow]
settings.register_profile("any machine", deadline=None, suppress_health_check=slow)
settings.load_profile("any machine")

# jsonschema would read the grammar of international addresses, for seconds in each
# process; no schema here has one.
sys.modules.setdefault("rfc3987_syntax", None)

# Whoever starts the tests in the background may have switched Control-C off, for all
# processes that they start as well; and some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Folders whose tests wait for jobs and other processes. They begin first, so that none
#: of them is what everybody waits for at the end.
LONG = ("clusters", "trainkit", "tools", "benchmarks", "pslaunch", "kvstore")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: Path(item.path).parent.name not in LONG)


def pytest_collection_finish():
    """A look for garbage, which tests of jobs take, then costs milliseconds: it leaves
    out the modules and all that was collected."""
    gc.collect()
    gc.freeze()


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
