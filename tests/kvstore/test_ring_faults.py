"""What becomes of a ring of real processes when something happens to one of them."""

import random

import pytest
from job_checks import nothing_left  # noqa: F401
from stress_ring import BOUND, trial


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("fault", BOUND)
def test_all_others_end_with_a_clear_error_in_time(fault, shared, nothing_left):  # noqa: F811
    """Many more: `python tests/helpers/stress_ring.py 30`."""
    found = trial(fault, random.Random(), [shared])
    assert found["wrong"] == [], found
