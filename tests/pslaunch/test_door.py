"""The door of a launcher: who gets in, to whom an agent opens its heart, and that what
somebody else writes into their channel ends it, and is no message to anybody."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from unittest.mock import Mock
from uuid import uuid4

import pytest
from job_checks import free_port, no_guard, nothing_left, wait_for  # noqa: F401

from pslaunch import channel, crew, plan, processes, submitted
from pslaunch.channel import (
    GREETING,
    NONCE,
    SIGNATURE,
    SIZE,
    Channel,
    Forged,
    Signed,
)
from pslaunch.job import Failed
from pslaunch.submitted import Submitted

SECRET, NONCES = "ab" * 32, (b"a" * NONCE, b"l" * NONCE)
FORGED = "a message was changed, dropped or repeated in transit"
CUT = "the connection ended in the middle of a message"


@pytest.fixture
def opened():
    with closing(channel.Door("127.0.0.1")) as one:
        yield one


def knock(opened, text=b""):
    """A stranger's connection, who says `text`."""
    line = socket.create_connection(opened.socket.getsockname(), 5)
    line.sendall(text)
    return line


def said(message):
    return json.dumps(message).encode() + b"\n"


def arrive(opened, secret=None):
    """A line to the door, and what an agent with number 7 has to say there."""
    line = knock(opened)
    opened.admitted()
    signed = Signed("agent", secret or opened.secret)
    signed.unseal(line.recv(100))
    come = said({"is": "come", "number": 7, "host": "h"})
    return line, signed.nonce + signed.seal(GREETING) + signed.seal(come)


def test_who_knows_the_secret_comes_in_with_its_number_and_none_without(opened):
    line, words = arrive(opened)
    other, wrong = arrive(opened, "0" * 64)
    with line, other:
        line.sendall(words[:-1])
        other.sendall(wrong)
        wait_for(lambda: opened.admitted() or len(opened.strangers) == 1)
        line.sendall(words[-1:])
        ((link, number),) = wait_for(opened.admitted)
    assert (number, link.host, opened.strangers) == (7, "h", [])
    link.close()


def test_what_somebody_else_has_said_once_lets_nobody_in_again(opened):
    """Each visitor is given another nonce."""
    line, words = arrive(opened)
    with line, knock(opened, words) as other:
        wait_for(lambda: opened.admitted() or len(opened.strangers) == 1)
        assert len(other.recv(100)) == NONCE and other.recv(100) == b""
        line.sendall(words)
        wait_for(opened.admitted)[0][0].close()


def test_strangers_disturb_nobody(opened, monkeypatch):
    strangers = [knock(opened), knock(opened, b"GET / HTTP/1.1\r\n\r\n"),
                 knock(opened, b"\xff\xfe\n"), knock(opened, b"x" * 5000),
                 knock(opened, b"x" * NONCE)]
    knock(opened).close()
    line, words = arrive(opened)
    with line:
        line.sendall(words)
        wait_for(opened.admitted)[0][0].close()
    monkeypatch.setattr(channel, "PATIENCE", 0)
    opened.admitted()
    assert opened.strangers == [], "those who say nothing are sent away too"
    for stranger in strangers:
        stranger.close()


def test_of_too_many_strangers_the_last_wait_until_the_first_have_gone(
    opened, monkeypatch
):
    monkeypatch.setattr(channel, "AT_ONCE", 2)
    strangers = [knock(opened) for _ in range(3)]
    assert opened.admitted() == [] and len(opened.strangers) == 2
    for stranger in strangers[:2]:
        stranger.close()
    wait_for(lambda: opened.admitted() or len(opened.strangers) == 1)
    with strangers[2]:
        assert len(strangers[2].recv(100)) == NONCE


def test_the_door_is_open_on_one_address_alone(opened):
    port = opened.socket.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), 5)


@pytest.mark.parametrize("answers, why", [
    (False, r"\[Errno 111\]"), (True, "the launcher closed the connection"),
])
def test_an_agent_without_a_launcher_ends_at_once_and_keeps_the_secret(
        tmp_path, answers, why):
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        path = tmp_path / "private" / "door"
        submitted.write_private(path, f"{host}:{port}:{SECRET}")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if not answers:
            server.close()
        words = [sys.executable, "-m", "pslaunch.agent", "NUMBER", str(path)]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            if answers:
                server.accept()[0].close()
            said = process.communicate(timeout=30)[1]
    assert process.returncode == 1
    assert re.search(f"cannot reach the launcher: {why}", said) and "abab" not in said


# ---- What is said afterwards ----


def pair(secret=SECRET, nonces=NONCES):
    """An agent's end and a launcher's, each with the nonce of the other."""
    ends = Signed("agent", secret), Signed("launcher", secret)
    for end, own, other in zip(ends, nonces, reversed(nonces)):
        end.nonce = own
        assert end.unseal(other) == b""
    return ends


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
    ("cd" * 32, NONCES), (SECRET, (b"x" * NONCE, NONCES[1])),
    (SECRET, (NONCES[0], b"x" * NONCE)), (SECRET, NONCES[::-1]),
])
def test_no_other_channel_has_these_keys(secret, nonces):
    sent = pair(secret, nonces)[0].seal(b"message")
    with pytest.raises(Forged, match=FORGED):
        pair()[1].unseal(sent)


# ---- The launcher's end ----


@pytest.mark.parametrize("spoil, why", [
    (lambda a, b: a + b[:-1] + bytes([b[-1] ^ 1]), FORGED),
    (lambda a, b: a + a, FORGED), (lambda a, b: b + a, FORGED),
    (lambda a, b: a + b[:-1], CUT), (lambda a, b: a + said({"is": "ended"}), CUT),
])
def test_the_launcher_loses_an_agent_whose_messages_were_spoilt_and_says_why(spoil,
                                                                             why):
    one, other = pair()
    here, there = socket.socketpair()
    fd = here.detach()
    team = crew.Crew(plan.make(["x"], 1, 1, hosts=["h"]), uuid4().hex, "127.0.0.1",
                     print, no_guard())
    channel = Channel(fd, fd, "h", "worker", other)
    team.reason = partial(Submitted.reason, Mock(said=["oh"], tool="srun"))
    with there:
        there.sendall(one.seal(GREETING)
                      + one.seal(said({"is": "here", "address": "127.0.0.1"})))
        team.add(channel)
        team.over.set()  # no beats
        wait_for(lambda: team.pump() or channel.address)
        there.sendall(spoil(one.seal(said({"is": "beat"})),
                            one.seal(said({"is": "ended", "code": 0}))))
    with pytest.raises(Failed, match=f"h was lost: {why}.*; srun printed: oh"):
        wait_for(team.pump, 5)
    assert channel.ended
    team.end(0)


# ---- The agent's end ----


def start(marker):
    """The order to make a file."""
    return {"do": "start", "number": 0, "command": ["touch", str(marker)],
            "folder": "/", "own": [free_port()],
            "env": {processes.MARK: f"test-{os.getpid()}"}}


@pytest.fixture
def obeying():
    """An agent that has dialled a door: its process, and the channel to it."""
    opened = channel.Door("127.0.0.1")
    env = {**os.environ, channel.DOOR: opened.invitation}
    process = subprocess.Popen([sys.executable, "-m", "pslaunch.agent", "-"],
                               env=env, stderr=subprocess.PIPE, text=True)
    ((link, number),) = wait_for(opened.admitted)
    assert (number, link.host) == (-1, socket.gethostname())
    with process:
        yield process, link
        link.close()
    opened.close()


def test_an_agent_does_what_its_launcher_says(obeying, tmp_path):
    process, link = obeying
    link.send(**start(tmp_path / "made"))
    found = []
    wait_for(lambda: found.extend(link.pump()) or link.ended)
    assert ({"is": "ended", "number": 0, "code": 0}, b"") in found
    assert (tmp_path / "made").exists()
    assert process.communicate(timeout=20)[1] == ""


@pytest.mark.parametrize("spoil, why", [
    (lambda order, sealed: order, FORGED),  # as if nothing were signed
    (lambda order, sealed: pair()[1].seal(order), FORGED),  # with another secret
    (lambda order, sealed: sealed.replace(b"touch", b"Touch"), FORGED),
    (lambda order, sealed: sealed[:-1], CUT),
])
def test_an_agent_does_nothing_of_what_others_say(obeying, tmp_path, spoil, why):
    process, link = obeying
    order = said(start(tmp_path / "made"))
    os.write(link.write, spoil(order, link.seal(order)))
    with socket.socket(fileno=os.dup(link.write)) as line:
        line.shutdown(socket.SHUT_WR)
    assert why in process.communicate(timeout=20)[1]
    assert not (tmp_path / "made").exists()
