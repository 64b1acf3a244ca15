"""Tests on a cluster in a box; without one, each says exactly why it is skipped."""

import pytest

import netbox as box


@pytest.fixture(scope="session")
def why_no_box():
    return box.why_not()


@pytest.fixture(scope="module")
def cluster(why_no_box):
    """Three hosts and a head, with a second interface each, for a whole module."""
    if why_no_box:
        pytest.skip(why_no_box)
    with box.Cluster(hosts=3, second_interface=True) as made:
        yield made
