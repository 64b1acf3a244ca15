"""A job on bad networks, without one: what its nodes say, and what becomes of it."""

from types import SimpleNamespace

import pytest

from benchmarks.clusters.bad_networks import job, trials
from benchmarks.clusters.bad_networks.job import MET, Outcome

#: Of two workers; the first step is not counted.
SECONDS = [[90.0, 1.0, 5.0, 3.0], [80.0, 2.0, 4.0, 2.0]]
RESULTS = [{"weights": "w", "seconds": seconds} for seconds in SECONDS]


def test_a_row_leaves_the_first_step_out_and_takes_the_slower_worker():
    row = trials.row_of(Outcome(RESULTS, {}, 12.34, tcp={"probes": 3}))
    assert row == {
        "finished": True, "weights": ["w"], "seconds_per_step": 3.0,
        "slowest_step": 5.0, "seconds": 12.3, "tcp": {"probes": 3}, "aborted": [],
        "said": {"dropped": 0, "sent again": 0, "came twice": 0}, "codes": {},
    }
    failed = trials.row_of(Outcome(None, {"worker-0": 3}, logs={"server-0": "x"}))
    assert (failed["finished"], failed["weights"], failed["codes"]) == (
        False, [], {"worker-0": 3})
    assert failed["seconds_per_step"] is failed["slowest_step"] is None


def test_the_links_of_both_hosts_on_the_way_share_the_losses():
    shares = []
    host = SimpleNamespace(shape=lambda loss: shares.append(loss))
    job.lose(SimpleNamespace(hosts=[host, host]), 0.19)
    assert shares == pytest.approx([0.1, 0.1])


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
