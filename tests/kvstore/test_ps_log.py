"""ps-lite's logs are read completely, also where threads wrote at the same time.

The files in `ps_logs` are the logs of a real job with two workers and a server and
`PS_VERBOSE=2`, in which each worker pushed and pulled ten numbers under one key, with
other ports and times.
"""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkit.figures import ps_chart
from d2l_ext.kvstore.ps_log import Event, Node, events, messages, rank, role

FOLDER = Path(__file__).parent / "ps_logs"
NAMES = ("scheduler-0", "server-0", "worker-0", "worker-1")
TEXTS = {name: (FOLDER / f"{name}.log").read_text() for name in NAMES}
LOGS = {name: messages(text) for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_no_message_of_a_log_is_missed(name):
    assert len(LOGS[name]) == TEXTS[name].count(". Meta: ") > 0


def test_what_one_node_sends_another_receives():
    sent, received = Counter(), Counter()
    for log in LOGS.values():
        for m in log:
            line = (m.sender, m.receiver, m.kind, m.request, m.timestamp, m.sizes)
            if m.kind != "terminate":  # to itself
                (sent if m.sent else received)[line] += 1
    assert sent == received


def test_a_push_and_a_pull_have_keys_values_and_lengths():
    log = [m for m in LOGS["worker-1"] if m.kind in ("push", "pull")]
    push, pushed, pull, pulled = log
    assert [m.kind for m in log] == ["push", "push", "pull", "pull"]
    assert (push.sizes, push.nbytes, push.values) == ((8, 40, 4), 52, 40)
    assert (pushed.sizes, pushed.nbytes, pushed.values) == ((), 0, 0)
    assert (pull.sizes, pull.nbytes, pull.values) == ((8, 0), 8, 0)
    assert (pulled.sizes, pulled.nbytes, pulled.values) == ((8, 40, 4), 52, 40)
    assert [m.sent for m in log] == [m.request for m in log] == [True, False] * 2
    assert push.timestamp == pushed.timestamp < pull.timestamp == pulled.timestamp


def test_the_events_of_the_scheduler_are_in_order():
    found = events(TEXTS["scheduler-0"])
    assert found[0] == Event("listens", Node("scheduler", 1, "127.0.0.1", 10001))
    assert found[1] == Event("numbered", Node("server", 8, "127.0.0.1", 10002))
    assert [e.kind for e in found[1:5]] == ["numbered"] * 3 + ["connected"]
    assert found[5:9] == [Event("waits")] * 4
    assert found[-1] == Event("stops")


def test_events_do_not_need_the_messages():
    for text in TEXTS.values():
        quiet = [line for line in text.splitlines() if ". Meta: " not in line]
        assert events("\n".join(quiet)) == events(text)
        assert messages("\n".join(quiet)) == []


@given(st.data())
def test_headers_of_other_threads_may_stand_anywhere_between_texts(data):
    """A text is one write; what is around it is several."""
    torn = []
    for line in TEXTS["worker-0"].splitlines(keepends=True):
        header, found, text = line.partition("van.cc")
        cut = data.draw(st.integers(0, len(header)))
        torn.append(header[:cut] + "[12:00:00] ../" + header[cut:] + found + text)
    assert messages("".join(torn)) == LOGS["worker-0"]


def test_lines_that_run_into_each_other_are_told_apart():
    joined = TEXTS["worker-0"].replace("\n", "")
    assert messages(joined) == LOGS["worker-0"]
    assert events(joined) == events(TEXTS["worker-0"])


def test_what_a_program_prints_and_an_optimizer_in_a_command_are_passed_over():
    optimizer = (
        "[12:00:00] ../van.cc:394: ? => 8. Meta: request=1, timestamp=7, app_id=0, "
        "customer_id=0, simple_app=1, push=0, head=0, "
        "body=ccopy_reg\n(dp5\nF0.01\nsb.\n"
    )
    *found, last = messages(TEXTS["worker-0"] + "loss 0.1\n" + optimizer + "epoch 2\n")
    assert found == LOGS["worker-0"]
    assert (last.kind, last.receiver, last.sizes) == ("command", 8, ())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("line", ["Bind to", "ADD_NODE"])
def test_a_log_without_its_first_line_or_the_introduction_is_refused(name, line):
    """The scheduler numbers other nodes: none of them has written this log."""
    lines = [text for text in TEXTS[name].splitlines() if line not in text]
    with pytest.raises(ValueError, match="it is truncated, or the job did not"):
        messages("\n".join(lines))


def test_a_node_by_name_that_could_not_bind_is_read():
    (event,) = events("Bind to role=worker, ip=host-1, port=-1, is_recovery=0\n")
    assert event == Event("listens", Node("worker", None, "host-1", -1))


def test_ids_tell_role_and_rank():
    assert [role(i) for i in (1, 8, 9, 10, 11)] == [
        "scheduler", "server", "worker", "server", "worker",
    ]
    assert [rank(i) for i in (8, 10, 12)] == [rank(i) for i in (9, 11, 13)] == [0, 1, 2]


def test_the_chart_has_an_arrow_for_each_message_and_the_bytes_of_values():
    phases = ps_chart.phases(LOGS.values())
    ax = ps_chart.plot(phases)
    arrows = [t for t in ax.texts if getattr(t, "arrow_patch", None)]
    assert len(arrows) == sum(len(group) for group in phases.values()) == 20
    labels = Counter(t.get_text() for t in ax.texts)
    assert labels["40 bytes"] == 4 == sum("bytes" in t.get_text() for t in ax.texts)
    assert all(labels[f"{ps_chart.name(i)}\nid {i}"] == 1 for i in (1, 8, 9, 11))
