"""The figure of workers and servers: its runs keep the store's rules, and are shown."""

from pathlib import Path

import pytest
from figure_checks import assert_framed, assert_same_as_python, browse, choosing

from bookkit.figures import ps_run, server_traffic_svg
from bookkit.figures.server_traffic import CONTROLS, data, figure
from bookkit.figures.server_traffic_state import (
    FIELDS,
    MESSAGES,
    computes,
    nbytes,
    state,
    traffic,
    under_way,
    waits,
)
from bookkit.figures.server_traffic_svg import drawing, moment, summary
from d2l_ext.kvstore.key_rule import shards
from d2l_ext.kvstore.ps_log import messages
from d2l_ext.kvstore.staleness import staleness

FLIGHT, DATA = ps_run.FLIGHT, data()
CHOICES = [
    dict(zip(("mode", "workers", "servers", "keys", "slow"), names))
    for names in (
        (mode, *map(int, numbers))
        for mode, *numbers in (key.split(",") for key in DATA["runs"])
    )
]
RUNS = [(choice, ps_run.run(**choice)) for choice in CHOICES]


def of(mode):
    return [(choice, run) for choice, run in RUNS if choice["mode"] == mode]


def ticks(e):
    return [e.pushed, e.handled, e.answered, e.asked, e.given]


def test_every_choice_has_a_run():
    assert len({tuple(c.values()) for c in CHOICES}) == len(CHOICES)
    assert len(CHOICES) == 2 * 4 * 3 * 3 * 3


def test_nothing_arrives_before_it_has_flown():
    for _, run in RUNS:
        for e in run.exchanges:
            known = [tick for tick in ticks(e) if tick is not None]
            assert known == ticks(e)[: len(known)] == sorted(known)
            for sent, next_ in ((0, 1), (2, 3), (3, 4)):
                if len(known) > next_:
                    assert known[next_] - known[sent] >= FLIGHT


def test_a_server_handles_one_request_per_tick_and_none_overtakes():
    for choice, run in RUNS:
        for server in range(choice["servers"]):
            own = [e for e in run.exchanges if e.server == server]
            served = [(e.handled, e.pushed) for e in own if e.handled is not None]
            served += [(e.given, e.asked) for e in own if e.given is not None]
            assert len({tick for tick, _ in served}) == len(served)
            sent = [tick for _, tick in sorted(served)]
            assert sent == sorted(sent)


def test_a_worker_sends_one_request_per_tick_and_computes_in_between():
    for choice, run in RUNS:
        for worker, begins in enumerate(run.begins):
            own = [e for e in run.exchanges if e.worker == worker]
            requests = {(e.pushed, e.key) for e in own}
            requests |= {(e.asked, e.key) for e in own if e.asked is not None}
            assert len({tick for tick, _ in requests}) == len(requests)
            ends = [begin + run.compute[worker] for begin in begins]
            first = sorted({e.pushed for e in own if e.key == 0})
            assert first == [end for end in ends if end < ps_run.END]
            backs = [max(e.given for e in own if first[i] <= e.pushed < begin) + FLIGHT
                     for i, begin in enumerate(begins[1:])]  # fmt: skip
            assert backs == begins[1:]
        assert run.compute[-1] == choice["slow"] * ps_run.COMPUTE


def test_a_synchronous_server_answers_the_pushes_of_a_key_together_and_after_the_last():
    for choice, run in of("dist_sync"):
        groups = {}
        for e in run.exchanges:
            if e.answered is not None:
                groups.setdefault((e.answered, e.key, e.server), []).append(e)
        for (answered, _, _), group in groups.items():
            assert max(e.handled for e in group) == answered
            assert sorted(e.worker for e in group) == [*range(choice["workers"])]
        assert len({len(begins) for begins in run.begins}) <= 2  # nobody runs ahead


def test_an_asynchronous_server_answers_at_once_so_that_the_fast_ones_go_on():
    for choice, run in of("dist_async"):
        assert all(e.answered == e.handled for e in run.exchanges)
        if choice["slow"] == 3 and choice["workers"] > 1:
            assert len(run.begins[0]) > len(run.begins[-1])


def test_a_synchronous_gradient_misses_no_update():
    for _, run in of("dist_sync"):
        assert all(e.stale == 0 for e in run.exchanges if e.handled is not None)


def test_staleness_is_the_number_of_updates_between_weights_and_gradient():
    stale = set()
    for _, run in of("dist_async"):
        done = [e for e in run.exchanges if e.handled is not None]
        for e in done:
            same = [o for o in done if (o.key, o.server) == (e.key, e.server)]
            own = [o.given for o in same
                   if o.worker == e.worker and o.pushed < e.pushed]  # fmt: skip
            weights = max(own, default=-1)
            assert e.stale == sum(weights < o.handled < e.handled for o in same)
            stale.add(e.stale)
    assert {0, 1, 2, 3, 4} <= stale


def test_staleness_by_tickets_counts_the_updates_before_the_pull_as_well():
    for choice, run in of("dist_async"):
        place = [e for e in run.exchanges
                 if (e.key, e.server) == (0, 0) and e.handled is not None]  # fmt: skip
        order = sorted(place, key=lambda e: e.handled)
        drawn = [[i for i, e in enumerate(order, start=1) if e.worker == w]
                 for w in range(choice["workers"])]  # fmt: skip
        for w, by_tickets in enumerate(staleness(drawn)):
            mine = [e for e in order if e.worker == w]
            early = [
                sum(e.handled < other.handled < e.given for other in order)
                for e in mine[:-1]
            ]
            assert by_tickets == [e.stale + n for e, n in zip(mine[1:], early)]


def test_bytes_are_those_of_the_key_rule_and_of_a_real_log():
    for servers in (1, 2, 3):
        values = ps_run.values_bytes(servers)
        for key, size in enumerate(ps_run.SIZES):
            held = shards(key, size, servers, bound=1_000_000)
            assert values[key] == [4 * n + 12 if n else 0 for n in held]
    log = (Path(__file__).parents[1] / "kvstore/ps_logs" / "server-0.log").read_text()
    seen = [m for m in messages(log) if m.kind in ("push", "pull")]
    d = {"values": [[4 * 10 + 12]]}
    sizes = {(m.kind, m.request): m.nbytes for m in seen}
    names = [("push", True), ("push", False), ("pull", True), ("pull", False)]
    assert [sizes[name] for name in names] == [
        nbytes(d, name, {"key": 0, "server": 0})
        for name in MESSAGES
    ]


def test_a_real_server_also_keeps_the_first_push_until_the_last_has_come():
    log = (Path(__file__).parents[1] / "kvstore/ps_logs" / "server-0.log").read_text()
    pushes = [m for m in messages(log) if m.kind == "push"][-4:]
    assert [m.request for m in pushes] == [True, True, False, False]
    run = ps_run.run(2, 1, 1)
    first = [e for e in run.exchanges if e.pushed == ps_run.COMPUTE]
    assert len(first) == 2 and all(e.answered == first[1].handled for e in first)
    assert first[0].handled < first[1].handled


def test_the_page_holds_every_run():
    for choice, run in RUNS:
        d = state(DATA, choice)
        assert d["exchanges"] == [vars(e) for e in run.exchanges]
        assert d["begins"] == run.begins and list(d["exchanges"][0]) == list(FIELDS)


def test_what_has_been_sent_has_arrived_or_is_under_way():
    for choice in CHOICES[::5]:
        d = state(DATA, choice)
        for t in range(0, ps_run.END, 7):
            arrived = sum(traffic(d, s, t)[0] for s in range(choice["servers"]))
            flying = [
                nbytes(d, name, e)
                for name, e, _ in under_way(d, t)
                if MESSAGES[name][1]
            ]
            sent = sum(
                nbytes(d, name, e)
                for e in d["exchanges"]
                for name, field in (("push", "pushed"), ("pull", "asked"))
                if e[field] is not None and e[field] <= t
            )
            assert sent == arrived + sum(flying)


def test_a_worker_computes_or_waits_for_something():
    for choice in CHOICES[::3]:
        d = state(DATA, choice)
        for t in range(ps_run.END):
            for worker in range(choice["workers"]):
                waiting = waits(d, worker, t)
                assert (computes(d, worker, t) is None) == bool(waiting)
                keys = [key for _, keys in waiting for key in keys]
                assert len(set(keys)) == len(keys) <= choice["keys"]


def test_the_words_say_who_waits_for_whom():
    d = state(DATA, {"mode": "dist_sync", "workers": 2, "servers": 1, "keys": 1,
                     "slow": 2})  # fmt: skip
    assert summary(d) == (
        "dist_sync, workers: 2, servers: 1, keys: 1, the last worker computes 2× as "
        "long as the others. After 60 ticks, steps finished by each worker: 2, 2; "
        "updates made by each server: 3. In a step, a worker pushes 2,400,012 bytes, "
        "and pulls as many. Most updates that a gradient missed: 0."
    )
    assert moment(d, 0) == "Tick 0 of 60: nothing has begun."
    assert moment(d, 13) == (
        "Tick 13 of 60: worker 0 waits for the answer to its push of key 0; worker 1 "
        "waits for the answer to its push of key 0. Server 0 has received 2,400,012 "
        "bytes, sent 0, keeps key 0 of worker 0 and waits for worker 1. On the way: "
        "push, key 0, worker 1 → server 0, 2,400,012 bytes. Updates missed by the "
        "gradients of key 0: worker 0: 0; worker 1: none yet."
    )


def test_a_message_flies_between_its_ends():
    d = {**state(DATA, CHOICES[-1]), "name": "n"}
    for now in range(ps_run.END + 1):
        flying = drawing(d, now).count('class="token"') - 4  # the legend
        assert flying == len(under_way(d, now - 1))


def test_the_figure_is_whole_without_scripts():
    first = {"mode": "dist_async", "workers": 3, "servers": 2, "keys": 2, "slow": 3,
             "clock": 31}  # fmt: skip
    html = figure(**first, name="other").data
    assert_framed(html, first, CONTROLS, server_traffic_svg, DATA, "other")
    assert html == figure(**first, name="other").data


def test_in_a_browser_the_figure_shows_the_same_as_python(tmp_path):
    clocks = [i * 7 % (ps_run.END + 1) for i in range(len(CHOICES))]
    choices = [{**c, "clock": t} for c, t in zip(CHOICES, clocks)][::5]
    seen = browse(figure().data, choosing(choices), tmp_path)
    assert_same_as_python(seen, choices, server_traffic_svg, DATA, "server-traffic")


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"mode": "sync"}, "unknown kind of store 'sync': dist_sync or dist_async"),
        ({"workers": 5}, "the figure shows workers from 1 to 4, not 5"),
        ({"servers": 0}, "the figure shows servers from 1 to 3, not 0"),
        ({"keys": 1.5}, "the figure shows keys from 1 to 3, not 1.5"),
        ({"slow": 4}, "the figure shows slow from 1 to 3, not 4"),
        ({"clock": 61}, "the figure shows clock from 0 to 60, not 61"),
    ],
)
def test_what_the_figure_cannot_show_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        figure(**wrong)
