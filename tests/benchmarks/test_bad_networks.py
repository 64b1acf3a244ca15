"""A job on bad networks, without one: what it asks of hosts, what its nodes say, and
what becomes of their answers."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks.clusters.bad_networks import job, trials
from benchmarks.clusters.bad_networks.job import MET, Outcome

#: Of two workers; the first step is not counted.
SECONDS = [[90.0, 1.0, 5.0, 3.0], [80.0, 2.0, 4.0, 2.0]]
RESULTS = {
    "train": [{"weights": "w", "seconds": seconds} for seconds in SECONDS],
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


def test_a_row_leaves_the_first_step_out_and_takes_the_slower_worker(asked):
    row = trials.row_of(job.run(None, trials.work.train))
    assert row == {
        "finished": True, "weights": ["w"], "seconds_per_step": 3.0,
        "slowest_step": 5.0, "seconds": 12.3, "tcp": {"probes": 3}, "aborted": [],
        "said": {"dropped": 0, "sent again": 0, "came twice": 0}, "codes": {},
    }
    failed = trials.row_of(Outcome(None, {"worker-0": 3}, logs={"server-0": "x"}))
    assert (failed["finished"], failed["weights"], failed["codes"]) == (
        False, [], {"worker-0": 3})
    assert failed["seconds_per_step"] is failed["slowest_step"] is None


def test_losses_are_shared_by_the_links_of_both_hosts_on_the_way(asked):
    (row,) = trials.loss(20, [0.19], steps=6, algorithm="bbr", options=("rto_min", "1"))
    assert (row["loss"], row["timeout"]) == (0.19, 20)
    prepared = "ip route change 10.77.0.0/24 dev eth0 src 10.77.0.13 congctl bbr"
    shaped = {"loss": pytest.approx(0.1)}
    done = [call[1] for call in asked if call[0] == "h3"]
    assert done == [prepared, f"{prepared} rto_min 1", shaped]
    resend = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": 20}
    assert asked[-1] == ("train", (6,), {"env": resend, "deadline": 150})
    trials.loss(None, [0.0])
    assert asked[-1] == ("train", (6,), {"env": None, "deadline": 150})


def host(number):
    return SimpleNamespace(name=f"h{number}", address=f"10.77.0.{number}")


def test_the_first_hosts_are_for_servers_and_the_others_for_workers():
    hosts = [host(i) for i in (1, 2, 3)]
    cluster = SimpleNamespace(hosts=hosts)
    assert job._nodes(cluster, 1) == [
        ("scheduler", 0, hosts[0]), ("server", 0, hosts[0]), ("worker", 0, hosts[1]),
        ("worker", 1, hosts[2])]
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
            "worker-1": "x.cc:9: Check failed: entry.num_retry < 10"}
    outcome = Outcome(None, {"worker-1": 134}, 7.6, logs)
    assert outcome.said() == {"dropped": 2, "sent again": 1, "came twice": 1}
    assert outcome.aborted() == ["worker-1"] and outcome.began()
    with pytest.raises(RuntimeError, match=r"no results after 8 s, .*134(?s:.*)num_r"):
        outcome.check()
    assert Outcome([1]).check().results == [1]
