"""Networks that lose packets, messages that are dropped, and a second interface."""

import re
import time

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


def test_bytes_take_the_interface_of_an_address_whichever_is_named(network):
    moved = trials._interface(network, 200_000, *trials.TOLD[2])["moved"]["h2"]
    assert sum(moved["eth1"]) < 20_000 and sum(moved["eth0"]) > 2 * 2 * 4 * 200_000


def test_with_resending_a_push_counts_once_if_its_answer_is_lost():
    """Workers are deaf in the second in which they push. The chapter has a deaf server.

    The job is repeated when it was not ready in time, and no answer was dropped, or
    when ps-lite gave up a node that was silent for ten time-outs: these grow.
    """
    for after in (10, 20, 40):
        second, percent = deaf.one_second(deaf.node_id("worker"), after)
        resend = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 30 * after}  # milliseconds
        ran = launch.call_job(work.at, second, 3.0, check=False, env=resend,
                              env_worker={"PS_DROP_MSG": percent},
                              deadline=second - time.time() + 60)
        seconds = drop_seconds(ran.output("worker"))
        if ran.results and seconds and "Duplicated message" in ran.output("server"):
            break
    assert ran.results, (ran.cause, ran.output("scheduler"))
    assert [r["got"] for r in ran.results] == [[7.0] * 3] * 2
    assert seconds and "Duplicated message" in ran.output("server")
    assert all(deaf.draw(deaf.node_id("worker"), at) < percent for at in seconds)


def drop_seconds(text):
    """The seconds of the epoch in which a node says that it dropped a message."""
    today = time.strftime("%Y-%m-%d ")
    clocks = re.findall(r"\[(\d\d:\d\d:\d\d)\].*Drop message", text)
    return {int(time.mktime(time.strptime(today + clock, "%Y-%m-%d %H:%M:%S")))
            for clock in clocks}


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
