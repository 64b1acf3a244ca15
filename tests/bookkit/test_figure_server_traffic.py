"""The figure of workers and servers: its runs keep the store's rules, and are shown."""

from itertools import chain
from pathlib import Path

import pytest
from figure_checks import State, labels, soup

from bookkit.figures import frame, ps_run
from bookkit.figures.server_traffic import data
from d2l_ext.kvstore.keys import shards
from d2l_ext.kvstore.ps_log import messages
from d2l_ext.kvstore.staleness import staleness

FLIGHT, DATA = ps_run.FLIGHT, data()
SCRIPT = frame.Script("server_traffic", "traffic", DATA)
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
                     for i, begin in enumerate(begins[1:])]
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
        assert all(e.stale == 0 for e in run.exchanges if e.handled is not None)


def test_an_asynchronous_server_answers_at_once_so_that_the_fast_ones_go_on():
    for choice, run in of("dist_async"):
        assert all(e.answered == e.handled for e in run.exchanges)
        if choice["slow"] == 3 and choice["workers"] > 1:
            assert len(run.begins[0]) > len(run.begins[-1])


def test_staleness_is_the_number_of_updates_between_weights_and_gradient():
    stale = set()
    for _, run in of("dist_async"):
        done = [e for e in run.exchanges if e.handled is not None]
        for e in done:
            same = [o for o in done if (o.key, o.server) == (e.key, e.server)]
            own = [o.given for o in same
                   if o.worker == e.worker and o.pushed < e.pushed]
            weights = max(own, default=-1)
            assert e.stale == sum(weights < o.handled < e.handled for o in same)
            stale.add(e.stale)
    assert {0, 1, 2, 3, 4} <= stale


def test_staleness_by_tickets_counts_the_updates_before_the_pull_as_well():
    for choice, run in of("dist_async"):
        place = [e for e in run.exchanges
                 if (e.key, e.server) == (0, 0) and e.handled is not None]
        order = sorted(place, key=lambda e: e.handled)
        drawn = [[i for i, e in enumerate(order, start=1) if e.worker == w]
                 for w in range(choice["workers"])]
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
    sizes = {(m.kind, m.request): m.nbytes for m in seen}
    names = [("push", True), ("push", False), ("pull", True), ("pull", False)]
    every = """Object.keys(MESSAGES).map((name) =>
        nbytes({ values: [[4 * 10 + 12]] }, name, { key: 0, server: 0 }))"""
    assert [sizes[name] for name in names] == SCRIPT.ask(CHOICES[0], every)


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
        d = SCRIPT.ask(choice, "d")
        assert d["exchanges"] == [vars(e) for e in run.exchanges]
        assert d["begins"] == run.begins
        assert d["values"] == ps_run.values_bytes(choice["servers"])[: choice["keys"]]


def test_what_has_been_sent_has_arrived_or_is_under_way():
    for (choice, run), t in zip(RUNS[::3], range(0, 720, 7)):
        values, t = ps_run.values_bytes(choice["servers"]), t % ps_run.END
        flying, moved = SCRIPT.ask(choice, f"""[
            underWay(d, {t}).filter(([name]) => MESSAGES[name][1])
                .map(([name, e]) => nbytes(d, name, e)),
            range(d.servers).map((s) => traffic(d, s, {t}))]""")
        into, out = (sum(column) for column in zip(*moved))
        parts = [(e, values[e.key][e.server]) for e in run.exchanges]
        assert into + sum(flying) == sum(
            n * (e.pushed <= t) + 8 * (e.asked is not None and e.asked <= t)
            for e, n in parts
        )
        assert out == sum(n for e, n in parts if e.given is not None and e.given <= t)


def test_a_worker_computes_or_waits_for_something():
    every = """range(d.end).map((t) => range(d.workers).map((w) =>
        [computes(d, w, t), waits(d, w, t)]))"""
    for choice in CHOICES[::3]:
        for computing, waiting in chain(*SCRIPT.ask(choice, every)):
            assert (computing is None) == bool(waiting)
            keys = [key for _, keys in waiting for key in keys]
            assert len(set(keys)) == len(keys) <= choice["keys"]


SMALL = {"mode": "dist_sync", "workers": 2, "servers": 1, "keys": 1, "slow": 2}


def test_the_words_say_who_waits_for_whom():
    d = State(SCRIPT, SMALL)
    for words in ("Tick 13 of 60", "received 2,400,012", "keeps key 0 of worker 0",
                  "waits for worker 1", "push, key 0, worker 1 → server 0, 2,400,012"):
        assert words in d.moment(13)


def test_the_words_say_what_every_run_came_to():
    for choice, run in RUNS:
        done = [e for e in run.exchanges if e.handled is not None]
        made = [len({(e.key, e.answered) if choice["mode"] == "dist_sync" else id(e)
                     for e in done if e.server == s and e.answered is not None})
                for s in range(choice["servers"])]
        finished = ", ".join(str(len(begins) - 1) for begins in run.begins)
        words = State(SCRIPT, choice).summary()
        assert f"finished by each worker: {finished}; updates made by each server: " + (
            f"{', '.join(map(str, made))}. "
        ) in words
        assert words.endswith(f"missed: {max(e.stale for e in done)}.")
        values = ps_run.values_bytes(choice["servers"])[: choice["keys"]]
        assert f"a worker pushes {sum(map(sum, values)):,} bytes" in words


def test_the_labels_say_who_holds_keeps_and_computes_what():
    assert labels(State(SCRIPT, SMALL).drawing(13)) == [
        "server 0", "holds key 0", "in 2.4 MB, out 0.0 MB", "0 updates",
        "keeps key 0: 1 of 2", "worker 0", "waits", "worker 1", "waits",
        "0",  # the push that is under way
        *("0", "push, the gradient of key 0", "0", "answer to a push", "0", "pull"),
        *("0", "answer to a pull, the weights", "a push is kept", "3"),
        *("a push updates; its gradient missed 3 others", "a pull is answered"),
        "worker 0", "0", "1", "2", "worker 1", "0", "1", "2",
        "server 0", "0", "0", "0", "tick 13",
    ]
    held = State(SCRIPT, {**SMALL, "servers": 3, "keys": 3})
    assert [held.held(s) for s in range(3)] == [
        "holds key 0, a third of key 1", "holds a third of key 1",
        "holds a third of key 1, key 2",
    ]


def test_a_message_flies_between_its_ends():
    choice = CHOICES[-1]
    drawn = SCRIPT.ask(choice, "range(d.end + 1).map((now) => drawing(d, now))")
    flying = SCRIPT.ask(choice, "range(d.end + 1).map((now) => underWay(d, now - 1))")
    for drawing, under_way in zip(drawn, flying):
        tokens = soup(drawing).find_all("g", class_="token")[:-4]  # the legend
        assert len(tokens) == len(under_way)
        for token, (name, e, age) in zip(tokens, under_way):
            request, filled = name in ("push", "pull"), name in ("push", "weights")
            assert token.text == str(e["key"]) and (token.rect is not None) == request
            risen = (236 - (int(token.find("text")["y"]) - 4)) / (236 - 92)
            way = (2 * age + 1) / (2 * FLIGHT)
            assert risen == pytest.approx(way if request else 1 - way, abs=0.01)
            assert (token.find(["rect", "circle"])["fill"] != "none") == filled
    ages = {age for under_way in flying for *_, age in under_way}
    assert ages == set(range(FLIGHT))
