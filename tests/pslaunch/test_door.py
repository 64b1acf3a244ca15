"""The door of a launcher: who gets in, and to whom an agent opens its heart."""

import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import pytest

from pslaunch import dial, door, proof, submission


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
            results.append(dial.dial(invitation, number))
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


SECRET = "ab" * 32


@contextmanager
def greeted():
    """An agent at a played launcher's: the line, what it has said, and its result."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        result = dialled("{}:{}:{}".format(*server.getsockname(), SECRET))
        line, _ = server.accept()
        with line:
            line.sendall(f"{proof.GREETING} 1234\n".encode())
            yield line, line.recv(1000).decode(), result


def test_an_agent_hangs_up_on_a_launcher_that_does_not_know_the_secret():
    with greeted() as (line, _, result):
        line.sendall(b"0" * 64 + b"\n")
        assert "does not know the secret" in str(result())


def test_what_the_launcher_says_right_after_its_proof_is_for_the_agent():
    with greeted() as (line, said, result):
        answer = proof.proof(SECRET, "launcher", said.split()[2], "1234")
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
    path = submission.write_private(tmp_path / "door", f"{host}:{port}:{'ab' * 32}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    words = [sys.executable, "-m", "pslaunch.dial", "NUMBER", str(path)]
    done = subprocess.run(words, check=False, capture_output=True, text=True,
                          timeout=30)  # fmt: skip
    assert done.returncode == 1
    assert "no way to the launcher: [Errno 111]" in done.stderr
    assert "abab" not in done.stdout + done.stderr
