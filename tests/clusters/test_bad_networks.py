"""Networks that lose packets, messages that are dropped, and a second interface."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as some
from job_checks import nothing_left  # noqa: F401

import pslaunch as launch
from benchmarks.clusters.bad_networks import deaf, job, trials, wire, work


@pytest.fixture
def network(cluster):
    """The three hosts, with real packets; what a test does to them is undone."""
    for host in cluster.hosts:
        job.prepare(host, "cubic")
    yield cluster
    job.lose(cluster, 0)


def test_weights_do_not_depend_on_packets_that_are_lost(network):
    """The server and the workers acknowledge and resend on top of TCP, too."""
    good = job.run(network, work.train, 2, node_host=False)
    job.lose(network, 0.05)
    lossy = job.run(network, work.train, 2, env=trials.RESEND)
    assert good.results and lossy.results, (good.logs, lossy.logs)
    weights = {r["weights"] for found in (good, lossy) for r in found.results}
    assert len(weights) == 1
    shares = [f.tcp["sent again"] / f.tcp["segments"] for f in (good, lossy)]
    assert shares[0] < 0.02 < shares[1] < 0.12  # they were lost indeed
    # A node that is told nothing of its address takes that of the first interface.
    assert sum(good.moved["h2"]["eth1"]) < 20_000 < sum(good.moved["h2"]["eth0"])


def test_bytes_take_the_interface_that_is_named_unless_an_address_is(network):
    rows = [trials._interface(network, 200_000, *how) for how in trials.TOLD[1:]]
    for row in rows:
        other, named = (sum(row["moved"]["h2"][card]) for card in ("eth0", "eth1"))
        expected = row["told"] == "DMLC_INTERFACE=eth1"
        assert (named if expected else other) > 2 * 2 * 4 * 200_000
        assert (other if expected else named) < 20_000


RESEND = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 300}


def outage(role, resend):
    """A job whose nodes of a role are deaf in the second in which workers push.

    Returns the job and a percentage; it is repeated when it was not ready in time, so
    that no push, or no answer to one, was dropped.
    """
    for after in (10, 20, 40):
        second, percent = deaf.one_second(deaf.node_id(role), after)
        wait, env = (60, RESEND) if resend else (4, None)
        ran = launch.call_job(work.at, second, 3.0, check=False, env=env,
                              deadline=second - time.time() + wait,
                              **{f"env_{role}": {"PS_DROP_MSG": percent}})
        dropped = "Drop message" in ran.output(role)
        if role == "worker":  # the server has seen the push, and it comes once more
            dropped &= "Duplicated message" in ran.output("server")
        if dropped and (resend or ran.results is None):
            return ran, percent
    raise AssertionError(f"no message was dropped: {ran.cause}")


@pytest.fixture(scope="module")
def outages():
    """What `outage` returns, by its arguments; side by side, since most is waiting."""
    kinds = [("server", False), ("server", True), ("worker", True)]
    with ThreadPoolExecutor() as pool:
        return dict(zip(kinds, pool.map(lambda kind: outage(*kind), kinds)))


def drop_seconds(text):
    """The seconds of the epoch in which a node says that it dropped a message."""
    today = time.strftime("%Y-%m-%d ")
    clocks = re.findall(r"\[(\d\d:\d\d:\d\d)\].*Drop message", text)
    return {int(time.mktime(time.strptime(today + clock, "%Y-%m-%d %H:%M:%S")))
            for clock in clocks}


def test_a_push_that_is_dropped_hangs_a_job_that_does_not_resend(outages):
    ran, percent = outages["server", False]
    assert ran.returncode == 124 and ran.results is None
    assert "the deadline passed" in ran.cause and "worker" in ran.cause
    dropped = drop_seconds(ran.output("server"))
    assert all(deaf.draw(deaf.node_id("server"), at) < percent for at in dropped)


@pytest.mark.parametrize("role", ["server", "worker"])
def test_with_resending_every_push_counts_once_whoever_is_deaf(outages, role):
    """A deaf server loses the push, a deaf worker the answer and the ACK."""
    ran, percent = outages[role, True]
    assert ran.results, ran.cause
    assert [r["got"] for r in ran.results] == [[7.0] * 3] * 2
    dropped = drop_seconds(ran.output(role))
    assert all(deaf.draw(deaf.node_id(role), at) < percent for at in dropped)
    if role == "worker":  # the server has seen the push: a second one is no new one
        assert "Duplicated message" in ran.output("server")


@given(some.integers(0, 2**31 - 40), some.integers(1, 60), some.integers(1, 99))
def test_nodes_are_deaf_in_one_pattern_shifted_by_their_ids(begin, seconds, percent):
    server = deaf.deaf(8, begin + 1, seconds, percent)
    assert server == deaf.deaf(9, begin, seconds, percent)


def test_the_longest_outage():
    assert deaf.longest([]) == deaf.longest([False]) == 0
    assert deaf.longest([True, False, True, True, False]) == 2


def test_one_second_is_the_only_deaf_one_until_after_it():
    second, percent = deaf.one_second(8, after=4)
    now = int(time.time())
    assert now + 3 <= second
    heard = [deaf.draw(8, at) >= percent for at in range(now + 2, second + 2)]
    assert heard.count(False) == 1 and deaf.draw(8, second) < percent


def test_bytes_of_an_exchange_by_hand():
    plain = wire.predicted([1000, 500], 8e-6 * 1514, workers=3)
    assert plain == pytest.approx(3 * 2 * 4 * 1500 / 1448)
    assert wire.predicted([1600], 1, compress=True) / wire.predicted(
        [1600], 1
    ) == pytest.approx((1 / 16 + 1) / 2)
