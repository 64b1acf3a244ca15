"""The trials on bad networks, without one: what each asks of hosts and jobs, played, is
what its stored result says, and what it makes of their answers."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks.unreliable import job, trials, wire
from benchmarks.unreliable.job import MET, Outcome
from bookkit import stored

#: What a trial chooses; the other columns of a row are measured.
CHOSEN = ("loss", "timeout", "algorithm", "options", "name", "mbit", "predicted",
          "batch_size", "exchanges", "told", "size", "type")  # fmt: skip
#: Of two workers; the first step is not counted.
SECONDS = [[90.0, 1.0, 5.0, 3.0], [80.0, 2.0, 4.0, 2.0]]
RESULTS = {
    "train": [{"weights": "w", "seconds": seconds} for seconds in SECONDS],
    "exchange": SECONDS,
    "for_a_while": [7, 8],
}


class PlayedHost:
    """Writes down how its link is shaped, and what its network is told."""

    def __init__(self, number, asked):
        self.name, self.address = f"h{number}", f"10.77.0.{10 + number}"
        self.shape = lambda **how: asked.append((self.name, how))
        tool = lambda words: asked.append((self.name, " ".join(words)))
        self.machine = SimpleNamespace(tool=tool)


@pytest.fixture
def asked(monkeypatch):
    """Boxes, links and jobs in the order in which they are asked for."""
    calls = []

    @contextmanager
    def cluster(count, **options):
        calls.append(("hosts", count, options))
        hosts = [PlayedHost(i + 1, calls) for i in range(count)]
        yield SimpleNamespace(hosts=hosts)

    def run(_, function, *args, **options):
        calls.append((function.__name__, args, options))
        moved = {"h1": {"eth0": [1, 2]}}
        return Outcome(RESULTS[function.__name__], {}, 12.34, {}, moved, {"probes": 3})

    monkeypatch.setattr(job.box, "Cluster", cluster)
    monkeypatch.setattr(job, "run", run)
    return calls


def jobs(asked):
    """The jobs among what was asked for."""
    return [call for call in asked if call[0] in RESULTS]


def told(asked, host):
    """What was done to the link and the network of a host."""
    return [call[1] for call in asked if call[0] == host]


def chosen(result):
    """What a trial chose for each of its rows."""
    rows = list(result.values()) if isinstance(result, dict) else result
    return [{key: row[key] for key in CHOSEN if key in row} for row in rows]


@pytest.mark.parametrize("name", [
    name for name in stored.names() if stored.read(name)["measure"].startswith(
        "benchmarks.unreliable.")])  # fmt: skip
def test_a_trial_asks_for_what_its_stored_result_has(name, asked):
    record = stored.read(name)
    function = getattr(trials, record["measure"].partition(":")[2])
    found = function(*record["args"])
    for row, old in zip(chosen(found), chosen(record["result"])):
        assert row == pytest.approx(old, rel=1e-12)
    assert len(found) == len(record["result"]) and asked


def test_a_row_leaves_the_first_step_out_and_takes_the_slower_worker(asked):
    row = trials.row_of(job.run(None, trials.work.train))
    assert row == {
        "finished": True, "weights": ["w"], "seconds_per_step": 3.0,
        "slowest_step": 5.0, "seconds": 12.3, "tcp": {"probes": 3}, "aborted": [],
        "said": {"dropped": 0, "sent again": 0, "came twice": 0}, "codes": {},
    }  # fmt: skip
    failed = trials.row_of(Outcome(None, {"worker-0": 3}, logs={"server-0": "x"}))
    assert (failed["finished"], failed["weights"], failed["codes"]) == (
        False, [], {"worker-0": 3})  # fmt: skip
    assert failed["seconds_per_step"] is failed["slowest_step"] is None


def test_losses_are_shared_by_the_links_of_both_hosts_on_the_way(asked):
    (row,) = trials.loss(20, [0.19], steps=6, algorithm="bbr", options=("rto_min", "1"))
    assert (row["loss"], row["timeout"]) == (0.19, 20)
    prepared = "ip route change 10.77.0.0/24 dev eth0 src 10.77.0.13 congctl bbr"
    shaped = {"loss": pytest.approx(0.1)}
    assert told(asked, "h3") == [prepared, f"{prepared} rto_min 1", shaped]
    resend = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 20}
    assert jobs(asked) == [("train", (6,), {"env": resend, "deadline": 150})]
    trials.loss(None, [0.0])
    assert jobs(asked)[1] == ("train", (6,), {"env": None, "deadline": 150})


def test_only_the_last_workers_link_is_slow(asked):
    fast, slow = {"rate": "100mbit"}, {"rate": "10mbit"}
    rows = trials.one_slow_worker(fast=100, slow=10, size=7, seconds=2)
    assert rows == [{"type": "dist_sync", "steps": [8, 7]},
                    {"type": "dist_async", "steps": [8, 7]}]  # fmt: skip
    assert told(asked, "h1")[1::2] == told(asked, "h2")[1::2] == [fast] * 2
    assert [how for how in told(asked, "h3") if "rate" in how] == [fast, slow] * 2
    assert jobs(asked) == [("for_a_while", (7, 2), {"kv_type": kind})
                           for kind in ("dist_sync", "dist_async")]  # fmt: skip


def test_the_second_interface_is_told_by_one_variable_the_other_or_none(asked):
    rows = trials.interfaces()
    assert asked[0] == ("hosts", 3, {"second_interface": True})
    of_eth1 = {"DMLC_INTERFACE": "eth1"}
    assert jobs(asked) == [
        ("exchange", ([500_000], 2), {"env": env, "node_host": node_host})
        for env, node_host in (({}, False), (of_eth1, False), (of_eth1, True))
    ]  # fmt: skip
    assert rows[0]["moved"] == {"h1": {"eth0": [1, 2]}}


def test_the_live_run_has_losses_a_slow_link_and_the_second_interface(asked):
    rows = trials.live()
    sizes = [250_000] * 4
    assert jobs(asked) == [
        ("train", (4,), {"env": {"DMLC_INTERFACE": "eth1"}, "node_host": False}),
        ("train", (4,), {}),
        ("exchange", (sizes, 3), {}),
    ]  # fmt: skip
    assert rows["no loss"]["moved"] == {"h1": {"eth0": [1, 2]}}
    lossy = {"loss": pytest.approx(1 - 0.95**0.5)}
    assert told(asked, "h2")[1:] == [lossy, {"loss": 0}, {"rate": "100mbit"}]
    assert rows["100 Mbit/s"] == {"measured": 3.0, "predicted": pytest.approx(
        2 * 2 * 8 * 4e6 * 1514 / 1448 / 1e8)}  # fmt: skip


def test_a_message_of_4_mb_meets_three_time_outs(asked):
    rows = trials.impatient()
    assert [row["timeout"] for row in rows] == [30, 200, 1000]
    assert rows[0]["moved"] == [1, 2] and rows[0]["finished"]
    assert jobs(asked) == [
        ("exchange", ([1_000_000], 3), {"env": {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": t},
                                        "deadline": 150})
        for t in (30, 200, 1000)]  # fmt: skip


def test_ways_over_a_slow_link_have_a_host_for_each_server_and_two_for_workers(asked):
    rows = trials.exchanges(10, [5, 6], 3, trials.TWO_SERVERS)
    assert asked[0] == ("hosts", 4, {})
    assert jobs(asked) == [
        ("exchange", ([5, 6], 3, compress), {"num_servers": 2, "kv_type": "dist_sync"})
        for compress in (False, True)]  # fmt: skip
    assert [row["measured"] for row in rows] == [3.0, 3.0]
    assert rows[1]["predicted"] == wire.predicted([5, 6], 10, 2, 2, True)


def test_larger_minibatches_exchange_less_often_and_the_first_step_is_no_exchange(
    asked
):  # fmt: skip
    rows = trials.batches(10, examples=256, sizes=(32, 128))
    assert jobs(asked) == [("train", (9, 32), {}), ("train", (3, 128), {})]
    assert rows[0] == {"batch_size": 32, "exchanges": 8, "seconds": 2.0 + 5.0 + 3.0}


# ---- A job, and what its nodes say ----


def host(number):
    return SimpleNamespace(name=f"h{number}", address=f"10.77.0.{number}")


def test_the_first_hosts_are_for_servers_and_the_others_for_workers():
    hosts = [host(i) for i in (1, 2, 3)]
    cluster = SimpleNamespace(hosts=hosts)
    assert job._nodes(cluster, 1) == [
        ("scheduler", 0, hosts[0]), ("server", 0, hosts[0]), ("worker", 0, hosts[1]),
        ("worker", 1, hosts[2])]  # fmt: skip
    with pytest.raises(ValueError, match="3 hosts: 3 are for servers, so one more"):
        job._nodes(cluster, 3)


def test_what_was_moved_is_what_was_counted_since():
    before = {"h1": {"eth0": [1, 20], "eth1": [0, 0]}}
    after = {"h1": {"eth0": [5, 25], "eth1": [0, 7]}}
    assert job._difference(after, before) == {"h1": {"eth0": [4, 5], "eth1": [0, 7]}}
    assert job.grown([{"probes": 1}, {"probes": 10}],
                          [{"probes": 4}, {"probes": 30}]) == {"probes": 23}


def test_a_job_is_started_again_only_while_its_workers_have_not_met(monkeypatch):
    def starts(*scheduler_says, results=None):
        logs, count = iter(scheduler_says), []

        def once(*_):
            count.append(1)
            return Outcome(results, logs={"scheduler-0": next(logs)})

        monkeypatch.setattr(job, "_once", once)
        job.run(None, print)
        return len(count)

    assert starts("", "", "", "") == job.ATTEMPTS == 3
    assert starts("", MET) == 2
    assert starts("", results=[1]) == 1


def test_an_outcome_counts_what_ps_lite_says_and_names_who_gave_up():
    logs = {"scheduler-0": MET, "server-0": "Drop message\nDrop message",
            "worker-0": "Timeout to get the ACK message\nDuplicated message",
            "worker-1": "x.cc:9: Check failed: entry.num_retry < 10"}  # fmt: skip
    outcome = Outcome(None, {"worker-1": 134}, 7.6, logs)
    assert outcome.said() == {"dropped": 2, "sent again": 1, "came twice": 1}
    assert outcome.aborted() == ["worker-1"] and outcome.began()
    with pytest.raises(RuntimeError, match=r"no results after 8 s, .*134(?s:.*)num_r"):
        outcome.check()
    assert Outcome([1]).check().results == [1]
