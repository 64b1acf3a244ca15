"""The door of a launcher: how agents that a scheduler has started find it, and speak.

A job of a scheduler has no pipe to its launcher, so its agents come by TCP. The door is
open on one address, while a start gathers its agents, and lets in who knows the secret
of that start. It proves as much of itself, for an agent does what it is told. Others on
the network can write into TCP, so what is said afterwards is signed, by each end with
a key for what it says, made of that secret and of the words of both ends at the door:

    a message: its size | signature | its bytes | signature

A signature is HMAC-SHA256 of the number of signatures before it and of what it stands
behind: nobody on the way can change, cut, leave out, repeat or reorder messages.
Contents stay readable.

A job of mpi, Slurm, Grid Engine, YARN or Kubernetes runs this file, so many times:
`python -m pslaunch.door VARIABLE [FILE]`. It dials the launcher's door, and from there
on it is an agent, `agent.py`. `VARIABLE`: the one in which the scheduler says which of
the copies this is. The invitation, address, port and secret, stands in the variable
`D2L_EXT_DOOR`, or in FILE, which only its owner may read; on no command line.

Standard library alone.
"""

import hmac
import os
import platform
import secrets
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from . import agent
from .channel import Forged

#: The variable with the invitation: 'ADDRESS:PORT:SECRET', the secret in hex.
DOOR = "D2L_EXT_DOOR"
GREETING = "d2l_ext door"
LIMIT = 1000  # bytes of a line
PATIENCE = 10.0  # seconds for the other side to answer
#: Strangers who are heard at a time; the others wait.
AT_ONCE = 100
SIZE, SIGNATURE = 4, 32  # bytes


def proof(secret, who, *words):
    """What only one who knows `secret` can say of these words: text in hex."""
    text = "\n".join([who, *words]).encode()
    return hmac.new(bytes.fromhex(secret), text, "sha256").hexdigest()


# ---- The launcher's side ----


@dataclass
class Knock:
    """Somebody who has not yet proved anything."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    text: bytes = b""
    since: float = field(default_factory=time.monotonic)


class Door:
    """`address`: the one on which it listens. Raises `OSError` when it can't."""

    def __init__(self, address):
        self.secret = secrets.token_hex(32)
        self.socket = socket.create_server((address, 0), backlog=AT_ONCE)
        self.socket.setblocking(False)
        self.knocks = {}

    @property
    def invitation(self):
        """'ADDRESS:PORT:SECRET', for agents' eyes only."""
        return "{}:{}:{}".format(*self.socket.getsockname()[:2], self.secret)

    def admitted(self):
        """Who has come in since the last call: a list of (socket, number,
        host, `Signed`)."""
        self._accept()
        found = []
        for line, knock in list(self.knocks.items()):
            try:
                new = line.recv(LIMIT)
                knock.text += new
                if knock.text.endswith(b"\n"):
                    found.append((line, *self._check(line, knock)))
                    del self.knocks[line]
                elif not new or len(knock.text) > LIMIT:
                    raise OSError("no agent")
            except BlockingIOError:
                if time.monotonic() - knock.since > PATIENCE:
                    self._refuse(line)
            except (OSError, ValueError):
                self._refuse(line)
        return found

    def _accept(self):
        with suppress(BlockingIOError):
            while len(self.knocks) < AT_ONCE:
                line, _ = self.socket.accept()
                line.setblocking(False)
                knock = self.knocks[line] = Knock()
                with suppress(OSError):  # it has left; noticed when it is read
                    line.send(f"{GREETING} {knock.nonce}\n".encode())

    def _check(self, line, knock):
        number, name, theirs, sign = knock.text.decode("ascii").split()
        expected = proof(self.secret, "agent", knock.nonce, number, name, theirs)
        if not hmac.compare_digest(sign, expected):
            raise ValueError("it does not know the secret")
        answer = proof(self.secret, "launcher", theirs, knock.nonce)
        line.send(answer.encode() + b"\n")
        signed = Signed("launcher", self.secret, knock.nonce, theirs)
        return int(number), name, signed

    def _refuse(self, line):
        del self.knocks[line]
        line.close()

    def close(self):
        """Let nobody in any more."""
        for line in list(self.knocks):
            self._refuse(line)
        self.socket.close()


# ---- The agent's side ----


def dial(invitation, number):
    """Connect, and prove ourselves; a pair of a socket, on which the launcher
    expects an agent, and a `Signed`, as which the agent should speak.

    `number`: which of the copies this is. Raises `OSError` when there is no launcher
    (any more), or somebody else.
    """
    address, port, secret = invitation.split(":")
    line = socket.create_connection((address, int(port)), PATIENCE)
    line.settimeout(PATIENCE)
    greeting, _, theirs = _receive(line).rpartition(" ")
    if greeting != GREETING:
        raise OSError("it is no launcher of this kind")
    ours, name = secrets.token_hex(16), platform.node() or "?"
    words = [str(number), name, ours]
    sign = proof(secret, "agent", theirs, *words)
    line.sendall(" ".join([*words, sign]).encode() + b"\n")
    if not hmac.compare_digest(_receive(line), proof(secret, "launcher", ours, theirs)):
        raise OSError("it does not know the secret")
    line.settimeout(None)
    return line, Signed("agent", secret, theirs, ours)


def _receive(line):
    """One line, and no byte of what comes after it."""
    text = b""
    while not text.endswith(b"\n"):
        byte = line.recv(1)
        if not byte or len(text) > LIMIT:
            raise OSError("it hung up")
        text += byte
    return text[:-1].decode("ascii", errors="replace")


# ---- What is said afterwards ----


class Signed:
    """One end of a channel; `who` it is: 'agent' or 'launcher'. `words`: the same at
    both ends, and only there."""

    def __init__(self, who, secret, *words):
        keys = {name: proof(secret, f"messages of the {name}", *words).encode()
                for name in ("agent", "launcher")}  # fmt: skip
        self.ours, self.theirs = (keys.pop(who), count()), (*keys.values(), count())
        self.inbox, self.size = b"", None  # of the message whose bytes are awaited

    def seal(self, message):
        """The bytes to send for a message, in the order of these calls."""
        parts = len(message).to_bytes(SIZE, "big"), message
        return b"".join(part + _signature(part, *self.ours) for part in parts)

    def unseal(self, new):
        """The messages that `new` bytes complete, joined; no bytes are the end.

        Raises `Forged`.
        """
        if not new and (self.inbox or self.size is not None):
            raise Forged("the connection ended inside of a message")
        self.inbox, found = self.inbox + new, b""
        while True:
            part = self._next_part(SIZE if self.size is None else self.size)
            if part is None:
                return found
            if self.size is None:
                self.size = int.from_bytes(part, "big")
            else:
                self.size, found = None, found + part

    def _next_part(self, size):
        end = size + SIGNATURE
        if len(self.inbox) < end:
            return None
        part, signature = self.inbox[:size], self.inbox[size:end]
        if not hmac.compare_digest(signature, _signature(part, *self.theirs)):
            raise Forged("a message was changed, left out or repeated on its way: "
                         "somebody else can write into this connection")
        self.inbox = self.inbox[end:]
        return part


def _signature(part, key, numbers):
    return hmac.digest(key, b"%d\n" % next(numbers) + part, "sha256")


def main(variable, file=None):
    """Serve as an agent. What became of its process, the launcher has heard: code 0
    then, or the scheduler would end the other copies. Else 1."""
    try:
        invitation = Path(file).read_text() if file else os.environ.pop(DOOR)
        line, signed = dial(invitation.strip(), int(os.environ.get(variable, "-1")))
    except (OSError, KeyError, ValueError) as error:
        # Not the invitation itself: this is printed to a log.
        print(f"dial: no way to the launcher: {error}", file=sys.stderr, flush=True)
        return 1
    agent.serve(line.fileno(), line.fileno(), signed.seal, signed.unseal)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
