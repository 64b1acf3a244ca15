"""The door of a launcher: who gets in, to whom an agent opens its heart, and that what
somebody else writes into their channel ends it, and is no message to anybody."""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import pytest
from job_checks import free_port, nothing_left, wait_for  # noqa: F401

from pslaunch import crew, door, plan, processes, submitted
from pslaunch.channel import Channel
from pslaunch.door import SIGNATURE, SIZE, Forged, Signed
from pslaunch.job import Failed

SECRET, NONCES = "ab" * 32, ("1234", "5678")
FORGED = "a message was changed, left out or repeated on its way"
CUT = "the connection ended inside of a message"


@pytest.fixture
def opened():
    with closing(door.Door("127.0.0.1")) as one:
        yield one


def admitted(opened, seconds=5):
    """Who has come in, when somebody has, or after `seconds` nobody."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = opened.admitted()
        if found:
            return found
        time.sleep(0.01)
    return []


def dialled(invitation, number=0):
    """Dial in a thread; returns a function, of the socket or the error."""
    results = []

    def run():
        try:
            results.append(door.dial(invitation, number))
        except (OSError, ValueError) as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return lambda: thread.join(10) or results[0]


def knock(opened, text=b""):
    """A stranger's connection, who says `text`."""
    line = socket.create_connection(opened.socket.getsockname(), 5)
    line.sendall(text)
    return line


def test_who_knows_the_secret_comes_in_with_its_number_and_both_can_talk(opened):
    result = dialled(opened.invitation, 7)
    ((line, number, name, _),) = admitted(opened)
    with line, result()[0] as other:
        assert (number, name) == (7, socket.gethostname())
        line.setblocking(True)
        other.sendall(b"question")
        assert line.recv(100) == b"question"
        line.sendall(b"answer")  # nothing of the greeting is in front of it
        assert other.recv(100) == b"answer"


def test_who_does_not_know_the_secret_stays_outside(opened):
    address = opened.invitation.rpartition(":")[0]
    result = dialled(f"{address}:{'0' * 64}")
    assert admitted(opened, 1) == []
    assert isinstance(result(), OSError)
    assert opened.knocks == {}


def test_what_somebody_else_has_said_once_lets_nobody_in_again(opened):
    """Each visitor is asked another question."""
    said = []

    def first_line(port_of_door):
        with socket.create_server(("127.0.0.1", 0)) as server:
            said.append(server.getsockname())
            line, _ = server.accept()
            with line, socket.create_connection(port_of_door) as real:
                line.sendall(real.recv(1000))
                said.append(line.recv(1000))  # kept, not handed on

    thread = threading.Thread(target=first_line, args=[opened.socket.getsockname()],
                              daemon=True)  # fmt: skip
    thread.start()
    while not said:
        time.sleep(0.01)
    secret = opened.invitation.rpartition(":")[2]
    dialled("{}:{}:{}".format(*said[0], secret))
    end = time.monotonic() + 5
    while len(said) < 2 and time.monotonic() < end:
        opened.admitted()
        time.sleep(0.01)
    with knock(opened, said[1]):
        assert admitted(opened, 0.5) == []


@contextmanager
def greeted():
    """An agent at a played launcher's: the line, what it has said, and its result."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        result = dialled("{}:{}:{}".format(*server.getsockname(), SECRET))
        line, _ = server.accept()
        with line:
            line.sendall(f"{door.GREETING} 1234\n".encode())
            yield line, line.recv(1000).decode(), result


def test_an_agent_hangs_up_on_a_launcher_that_does_not_know_the_secret():
    with greeted() as (line, _, result):
        line.sendall(b"0" * 64 + b"\n")
        assert "does not know the secret" in str(result())


def test_what_the_launcher_says_right_after_its_proof_is_for_the_agent():
    with greeted() as (line, said, result):
        answer = door.proof(SECRET, "launcher", said.split()[2], "1234")
        line.sendall(answer.encode() + b"\nbegin")
        with result()[0] as agent:
            assert agent.recv(100) == b"begin"
            assert agent.gettimeout() is None  # it may have to wait for work


def test_strangers_disturb_nobody(opened, monkeypatch):
    strangers = [knock(opened), knock(opened, b"GET / HTTP/1.1\r\n\r\n"),
                 knock(opened, b"\xff\xfe\n"), knock(opened, b"x" * 5000),
                 knock(opened, b"a b c d\n"), knock(opened, b"1 n 0 \xc3\xa4\n")]
    knock(opened).close()
    result = dialled(opened.invitation)
    ((line, number, *_),) = admitted(opened)
    with line, result()[0]:
        assert number == 0
    monkeypatch.setattr(door, "PATIENCE", 0)
    opened.admitted()
    assert opened.knocks == {}, "those who say nothing are sent away too"
    for stranger in strangers:
        stranger.close()


def test_of_too_many_strangers_the_last_wait_until_the_first_have_gone(
    opened, monkeypatch
):
    monkeypatch.setattr(door, "AT_ONCE", 2)
    strangers = [knock(opened) for _ in range(3)]
    assert opened.admitted() == [] and len(opened.knocks) == 2
    for stranger in strangers[:2]:
        stranger.close()
    result = dialled(opened.invitation)
    ((line, *_),) = admitted(opened)
    with line, result()[0], strangers[2]:
        assert len(opened.knocks) == 1


def test_the_door_is_open_on_one_address_alone(opened):
    port = opened.socket.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), 5)


def test_an_agent_without_a_launcher_ends_at_once_and_keeps_the_secret(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    path = submitted.write_private(tmp_path / "door", f"{host}:{port}:{'ab' * 32}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    words = [sys.executable, "-m", "pslaunch.door", "NUMBER", str(path)]
    done = subprocess.run(words, check=False, capture_output=True, text=True,
                          timeout=30)  # fmt: skip
    assert done.returncode == 1
    assert "no way to the launcher: [Errno 111]" in done.stderr
    assert "abab" not in done.stdout + done.stderr


# ---- What is said afterwards ----


def pair():
    return Signed("agent", SECRET, *NONCES), Signed("launcher", SECRET, *NONCES)


def test_what_is_sealed_is_unsealed_whichever_way_and_in_whatever_pieces():
    one, other = pair()
    messages = [b"a", b"", b"{}\n", bytes(range(256)) * 1000]
    for sender, receiver in (one, other), (other, one):
        sent = b"".join(map(sender.seal, messages))
        pieces = [sent[i : i + 4099] for i in range(0, len(sent), 4099)]
        assert b"".join(map(receiver.unseal, pieces)) == b"".join(messages)
        assert receiver.unseal(b"") == b""


def test_each_bit_of_a_message_is_signed():
    sent = pair()[0].seal(b"message")
    assert len(sent) == SIZE + len(b"message") + 2 * SIGNATURE
    for i in range(8 * len(sent)):
        changed = bytearray(sent)
        changed[i // 8] ^= 1 << i % 8
        with pytest.raises(Forged, match=FORGED):
            pair()[1].unseal(bytes(changed))


def test_a_message_that_stops_anywhere_is_no_message():
    sent = pair()[0].seal(b"message")
    for size in range(1, len(sent)):
        other = pair()[1]
        assert other.unseal(sent[:size]) == b""
        with pytest.raises(Forged, match=CUT):
            other.unseal(b"")


@pytest.mark.parametrize("order", [[0, 0], [1], [1, 0], [0, 2], [0, 1, 0]])
def test_a_message_has_one_place(order):
    one, other = pair()
    sent = [one.seal(b"%d" % i) for i in range(3)]
    with pytest.raises(Forged, match=FORGED):
        other.unseal(b"".join(sent[i] for i in order))


def test_nobody_can_be_told_what_they_said_themselves():
    one, _ = pair()
    with pytest.raises(Forged, match=FORGED):
        one.unseal(one.seal(b"message"))


@pytest.mark.parametrize("secret, nonces", [
    ("cd" * 32, NONCES), (SECRET, ("1234", "9999")), (SECRET, ("0000", "5678")),
])  # fmt: skip
def test_no_other_channel_has_these_keys(secret, nonces):
    sent = Signed("agent", secret, *nonces).seal(b"message")
    with pytest.raises(Forged, match=FORGED):
        pair()[1].unseal(sent)


# ---- The launcher's end ----


def said(text):
    return json.dumps(text).encode() + b"\n"


@pytest.mark.parametrize("spoil, why", [
    (lambda a, b: a + b[:-1] + bytes([b[-1] ^ 1]), FORGED),
    (lambda a, b: a + a, FORGED), (lambda a, b: b + a, FORGED),
    (lambda a, b: a + b[:-1], CUT), (lambda a, b: a + said({"is": "ended"}), CUT),
])  # fmt: skip
def test_the_launcher_loses_an_agent_whose_messages_were_spoilt_and_says_why(spoil,
                                                                             why):
    one, other = pair()
    here, there = socket.socketpair()
    fd = here.detach()
    team = crew.Crew(plan.make(["x"], 1, 1, hosts=["h"]), "job", "127.0.0.1", print)
    channel = Channel(fd, fd, "h", "worker", other.seal, other.unseal)
    team.reason = lambda link: link.forged
    with there:
        there.sendall(one.seal(processes.GREETING)
                      + one.seal(said({"is": "here", "address": "127.0.0.1"})))
        team.add(channel)
        team.over.set()  # no beats
        wait_for(lambda: team.pump() or channel.address)
        there.sendall(spoil(one.seal(said({"is": "beat"})),
                            one.seal(said({"is": "ended", "code": 0}))))
    with pytest.raises(Failed, match=f"h was lost: {why}"):
        wait_for(team.pump, 5)
    assert channel.ended
    team.end(0)


# ---- The agent's end ----


def start(marker):
    """The order to make a file."""
    return {"do": "start", "command": ["touch", str(marker)], "folder": "/",
            "port": free_port(), "env": {processes.MARK: f"test-{os.getpid()}"}}


@pytest.fixture
def obeying():
    """An agent that has dialled a door: its process, the line, and the door's end."""
    opened = door.Door("127.0.0.1")
    env = {**os.environ, door.DOOR: opened.invitation}
    process = subprocess.Popen([sys.executable, "-m", "pslaunch.door", "-"],
                               env=env, stderr=subprocess.PIPE, text=True)  # fmt: skip
    found = []
    wait_for(lambda: found.extend(opened.admitted()) or found)
    line, _, _, signed = found[0]
    line.setblocking(True)
    with process:
        yield process, line, signed
        line.close()
    opened.close()


def test_an_agent_does_what_its_launcher_says(obeying, tmp_path):
    process, line, signed = obeying
    line.sendall(signed.seal(said(start(tmp_path / "made"))))
    text = b""
    while b'"is": "ended"' not in text:
        text += signed.unseal(line.recv(65536))
    assert b'"code": 0' in text
    assert (tmp_path / "made").exists()
    assert process.communicate(timeout=20)[1] == ""


@pytest.mark.parametrize("spoil, why", [
    (lambda order, sealed: order, FORGED),  # as if nothing were signed
    (lambda order, sealed: sealed.replace(b"touch", b"Touch"), FORGED),
    (lambda order, sealed: sealed[:-1], CUT),
])  # fmt: skip
def test_an_agent_does_nothing_of_what_others_say(obeying, tmp_path, spoil, why):
    process, line, signed = obeying
    order = said(start(tmp_path / "made"))
    line.sendall(spoil(order, signed.seal(order)))
    line.shutdown(socket.SHUT_WR)
    assert why in process.communicate(timeout=20)[1]
    assert not (tmp_path / "made").exists()
