"""What somebody else writes into a channel ends it, and is no message to anybody."""

import json
import os
import socket
import subprocess
import sys

import pytest
from job_checks import free_port, nothing_left, wait_for  # noqa: F401

from pslaunch import agent, crew, plan, processes, proof
from pslaunch.channel import Channel
from pslaunch.door import Door
from pslaunch.failures import Failed
from pslaunch.signed import SIGNATURE, SIZE, Forged, Signed

SECRET, NONCES = "ab" * 32, ("1234", "5678")
FORGED = "a message was changed, left out or repeated on its way"
CUT = "the connection ended inside of a message"


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
        there.sendall(one.seal(agent.GREETING)
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
def dialled():
    """An agent that has dialled a door: its process, the line, and the door's end."""
    door = Door("127.0.0.1")
    env = {**os.environ, proof.DOOR: door.invitation}
    process = subprocess.Popen([sys.executable, "-m", "pslaunch.dial", "-"],
                               env=env, stderr=subprocess.PIPE, text=True)  # fmt: skip
    found = []
    wait_for(lambda: found.extend(door.admitted()) or found)
    line, _, _, signed = found[0]
    line.setblocking(True)
    with process:
        yield process, line, signed
        line.close()
    door.close()


def test_an_agent_does_what_its_launcher_says(dialled, tmp_path):
    process, line, signed = dialled
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
def test_an_agent_does_nothing_of_what_others_say(dialled, tmp_path, spoil, why):
    process, line, signed = dialled
    order = said(start(tmp_path / "made"))
    line.sendall(spoil(order, signed.seal(order)))
    line.shutdown(socket.SHUT_WR)
    assert why in process.communicate(timeout=20)[1]
    assert not (tmp_path / "made").exists()
