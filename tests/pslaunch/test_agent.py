"""The remote end of a job, over two pipes: what it runs, and that it ends it."""

import d2l_ext  # noqa: F401, I001
import os
import signal
import socket
import subprocess
import sys
from uuid import uuid4

import pytest
from job_checks import alive, free_port, no_guard, nothing_left, wait_for  # noqa: F401

from pslaunch import crew, plan, processes, ssh
from pslaunch.channel import Channel

#: The agent as ssh starts it: this text alone, without any package.
SENT = [sys.executable, "-E", "-s", "-S", "-c", ssh.BECOME]
#: One that gives up sooner.
HASTE = ("from pslaunch import agent, channel; agent.SILENCE = 1; "
         "agent.serve(channel.Channel(0, 1))")
IMPATIENT = [sys.executable, "-c", HASTE]
#: One that does not give up at all.
PATIENT = [sys.executable, "-c", HASTE.replace("SILENCE = 1", "SILENCE = 1000")]
STUBBORN = ["bash", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000"]
PORT = free_port()


@pytest.fixture
def agents(nothing_left):  # noqa: F811
    """A function that starts an agent: (its `Popen`, the `Channel` to it)."""
    started = []

    def start(words=SENT):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = subprocess.Popen(words, stdin=theirs, stdout=theirs, cwd="/")
            fd = ours.detach()
        channel = Channel(fd, fd, "here")
        if words is SENT:
            channel.send(ssh.agent_source())
        started.append((process, channel))
        return process, channel

    yield start
    for process, channel in started:
        if channel.read is not None:
            channel.close()
        process.wait()


def heard(channel, until="ended"):
    """Messages up to one of the kind `until`, or to the end: a list of pairs."""
    found = []

    def arrived():
        found.extend(channel.pump())
        return channel.ended or any(m["is"] in (until, "error") for m, _ in found)

    wait_for(arrived, 30)
    return [(m, p) for m, p in found if m["is"] not in ("beat", "begun")]


def run(channel, *command, folder="/", **env):
    channel.send(do="hello", root="127.0.0.1")
    env[processes.MARK] = f"test-{os.getpid()}"
    channel.send(do="start", number=0, command=command, env=env, folder=folder,
                 own=[PORT])


def test_output_and_code_of_a_process_come_back_in_order(agents):
    process, channel = agents()
    run(channel, "sh", "-c", "printf 'a\\nb'; echo $X >&2; exit 3", X="$(x) 'y'\n")
    here, *rest = heard(channel)
    assert here[0]["address"] == "127.0.0.1"
    assert b"".join(payload for _, payload in rest) == b"a\nb$(x) 'y'\n"
    assert rest[-1][0] == {"is": "ended", "number": 0, "code": 3}
    assert process.wait() == 0


def test_a_process_is_given_this_python_and_no_variables_of_another_job(agents,
                                                                        monkeypatch):
    monkeypatch.setenv("DMLC_ROLE", "server")
    monkeypatch.setenv("PS_DROP_MSG", "50")
    _, channel = agents()
    run(channel, None, "-c", "import os, sys; print(sys.executable, [k for k in "
        "os.environ if k[:3] in ('DML', 'PS_')])")
    said = b"".join(text for _, text in heard(channel))  # it may come in pieces
    assert said == f"{sys.executable} []\n".encode()


def test_much_output_arrives_whole(agents):
    _, channel = agents()
    run(channel, "sh", "-c", "seq 400000")
    text = b"".join(payload for _, payload in heard(channel))
    assert text == b"".join(b"%d\n" % i for i in range(1, 400001))


def test_what_a_process_leaves_behind_may_say_its_last_words(agents):
    _, channel = agents()
    stays = "(trap 'echo last; exit' TERM; while :; do sleep 0.05; done)"
    run(channel, "bash", "-c", f"{stays} & sleep 0.5; exit 3")
    *said, (message, _) = heard(channel)
    assert b"".join(payload for _, payload in said).endswith(b"last\n")
    assert message == {"is": "ended", "number": 0, "code": 3}


@pytest.mark.parametrize("how", ["closed", "end", "SIGTERM", "silence"])
def test_a_process_and_its_children_end_with_the_channel(agents, nothing_left, how):  # noqa: F811
    words = {"silence": IMPATIENT, "SIGTERM": PATIENT, "closed": PATIENT}
    process, channel = agents(words.get(how, SENT))
    run(channel, *STUBBORN)
    wait_for(lambda: len(alive(nothing_left)) == 4)  # with the agent
    if how == "closed":
        channel.close()
    elif how == "end":
        channel.send(do="end", grace=0.2)
    elif how == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    assert not alive(nothing_left)


def test_what_hides_from_its_agent_ends_with_the_process(agents):
    process, channel = agents()
    run(channel, "sh", "-c", "setsid env -i sleep 1000 & echo $!")
    number = b"".join(text for _, text in heard(channel)).decode().strip()
    assert process.wait() == 0
    assert processes.state(number) == ""


def test_a_process_that_was_stopped_is_told_of(agents):
    _, channel = agents()
    run(channel, "sh", "-c", "kill -STOP $$")
    stopped = heard(channel, "halted")[-1][0]
    assert stopped["is"] == "halted" and processes.state(stopped["pid"]) == "T"
    os.kill(stopped["pid"], signal.SIGCONT)
    assert heard(channel)[-1][0] == {"is": "ended", "number": 0, "code": 0}


def test_a_listening_process_is_told_of_and_its_port_kept_from_others(agents):
    _, channel = agents()
    run(channel, None, "-c", "import socket, time; s = socket.create_server("
        f"('127.0.0.1', {PORT})); time.sleep(1000)")
    assert [m["is"] for m, _ in heard(channel, "listening")] == ["here", "listening"]
    _, other = agents()
    run(other, "true")
    assert heard(other)[-1][0] == {"is": "error", "number": 0, "code": 98,
                                   "text": f"port {PORT} is taken"}


@pytest.mark.parametrize("command, folder, text, code", [
    (["no-such"], "/", "no-such: No such file or directory", 127),
    (["/etc/passwd"], "/", "/etc/passwd: Permission denied", 126),
    (["true"], "/no/such", "no such folder: /no/such", 126),
])
def test_what_cannot_be_started_is_told_with_its_reason(agents, command, folder, text,
                                                        code):
    _, channel = agents()
    run(channel, *command, folder=folder)
    assert heard(channel)[-1][0] == {"is": "error", "number": 0, "text": text,
                                     "code": code}


def test_what_a_shell_prints_before_the_agent_is_no_message(agents):
    noisy = f"echo Welcome; exec {sys.executable} -c '{HASTE}'"
    _, channel = agents(["sh", "-c", noisy])
    run(channel, "true")
    assert [m["is"] for m, _ in heard(channel)] == ["here", "ended"]
    assert channel.noise == b"Welcome\n"


def test_an_agent_looks_for_the_interface_on_its_own_host(agents):
    _, channel = agents()
    channel.send(do="hello", root="127.0.0.1", interface="eth77")
    assert "no address on interface 'eth77'" in heard(channel)[-1][0]["text"]


def team_of_one():
    """A crew with one agent, and the agent's end of their channel."""
    here, there = socket.socketpair()
    team = crew.Crew(plan.make(["x"], 1, 1, hosts=["h"]), uuid4().hex, "127.0.0.1",
                     print, no_guard())
    fd = here.detach()
    team.open = lambda: team.add(Channel(fd, fd, "h", "worker"))
    return team, there


def test_beats_go_on_while_the_launcher_is_held_up(monkeypatch):
    monkeypatch.setattr(crew, "BEAT", 0.01)
    team, there = team_of_one()
    assert not team.gathered()
    text = b""
    with there:  # and nobody pumps
        while text.count(b'{"do": "beat"}\n') < 3:
            text += there.recv(4096)
    team.end(0)


def test_an_agent_that_is_not_heard_of_is_lost(monkeypatch):
    monkeypatch.setattr(crew, "SILENCE", 0.1)
    team, there = team_of_one()
    there.send(b'd2l_ext agent\n{"is": "here", "address": "127.0.0.1"}\n')
    wait_for(lambda: not team.gathered() and team.channels[0].address)
    with pytest.raises(crew.Failed, match="h was lost"):
        wait_for(lambda: team.pump(), 5)
    there.close()
    team.end(0)
