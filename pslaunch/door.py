"""The door of a launcher: how agents that a scheduler has started find it, and speak.

A job of a scheduler has no pipe to its launcher, so its agents come by TCP. The door is
open on one address, while a start gathers its agents. Others on the network can come to
it too, and write into what others say there, so each message is signed:

    each end, first: its nonce      a message: its size | signature | it | signature

A nonce is made up for this connection. Each end signs with a key of its own, made of
the secret of this start and of both nonces. A signature is HMAC-SHA256 of the number of
signatures before it and of what it stands behind: nobody on the way can change, cut,
leave out, repeat or reorder messages. So the first message proves that its sender knows
the secret: who has sent one is let in, and an agent does nothing before it has come by
one. Contents stay readable.

A job of mpi, Slurm, Grid Engine or YARN runs this file, so many times:
`python -m pslaunch.door VARIABLE [FILE]`. It dials the launcher's door, and from there
on it is an agent, `agent.py`. `VARIABLE`: the one in which the scheduler says which of
the copies this is. The invitation, address, port and secret, stands in the variable
`D2L_EXT_DOOR`, or in FILE, which only its owner may read; on no command line.
"""

import hmac
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from . import agent
from .channel import Channel, Forged

#: The variable with the invitation: 'ADDRESS:PORT:SECRET', the secret in hex.
DOOR = "D2L_EXT_DOOR"
PATIENCE = 30.0  # seconds for the other side to answer
#: Strangers who are heard at a time; the others wait.
AT_ONCE = 100
NONCE, SIZE, SIGNATURE = 16, 4, 32  # bytes


class Door:
    """`address`: the one on which it listens. Raises `OSError` when it can't.

    `invitation`: 'ADDRESS:PORT:SECRET', for agents' eyes only.
    """

    def __init__(self, address):
        self.secret = secrets.token_hex(32)
        self.socket = socket.create_server((address, 0), backlog=AT_ONCE)
        self.socket.setblocking(False)
        place = self.socket.getsockname()
        self.invitation = f"{place[0]}:{place[1]}:{self.secret}"
        self.strangers = []  # channels to those who have not yet proved anything

    def admitted(self):
        """Who has come in since the last call: a list of (`Channel`, number)."""
        self._accept()
        found = []
        for link in list(self.strangers):
            messages = link.pump()
            if messages:
                said, _ = messages[0]  # those after it are beats
                link.host = said["host"]
                found.append((link, said["number"]))
                self.strangers.remove(link)
            elif link.ended or time.monotonic() - link.heard > PATIENCE:
                self.strangers.remove(link)
                link.close()
        return found

    def _accept(self):
        with suppress(BlockingIOError):
            while len(self.strangers) < AT_ONCE:
                line, _ = self.socket.accept()
                signed = Signed("launcher", self.secret)
                with suppress(OSError):  # it has left; noticed when it is read
                    line.send(signed.nonce)
                fd = line.detach()
                self.strangers.append(Channel(fd, fd, signed=signed))

    def close(self):
        """Let nobody in any more."""
        for link in self.strangers:
            link.close()
        self.strangers.clear()
        self.socket.close()


def dial(invitation):
    """The `Channel` of an agent to the launcher. Raises `OSError` without one."""
    address, port, secret = invitation.split(":")
    signed = Signed("agent", secret)
    line = socket.create_connection((address, int(port)), PATIENCE)
    with line, line.makefile("rb") as file:
        theirs = file.read(NONCE)
        if len(theirs) < NONCE:
            raise OSError("it hung up")
        signed.unseal(theirs)
        line.sendall(signed.nonce)
        fd = line.detach()
    return Channel(fd, fd, signed=signed)


class Signed:
    """What one end of a channel says and hears. `who`: that end, 'agent' or 'launcher'.
    `secret`: in hex. `nonce`: bytes to send before all others, as they are.
    """

    def __init__(self, who, secret):
        self.who, self.secret = who, bytes.fromhex(secret)
        self.nonce = secrets.token_bytes(NONCE)
        self.ours = self.theirs = None  # key, and numbers, of what each end signs
        self.inbox, self.size = b"", None  # of the message whose bytes are awaited

    def seal(self, message):
        """The bytes to send for a message, in the order of these calls."""
        parts = len(message).to_bytes(SIZE, "big"), message
        return b"".join(part + _signature(part, *self.ours) for part in parts)

    def unseal(self, new):
        """The messages that `new` bytes complete, joined; no bytes are the end. The
        first bytes of all are the other's nonce.

        Raises `Forged`.
        """
        if not new and (self.inbox or self.size is not None):
            raise Forged("the connection ended inside of a message")
        self.inbox, found = self.inbox + new, b""
        if not self.theirs:
            if len(self.inbox) < NONCE:
                return b""
            self._meet(self.inbox[:NONCE])
            self.inbox = self.inbox[NONCE:]
        while True:
            part = self._next_part(SIZE if self.size is None else self.size)
            if part is None:
                return found
            if self.size is None:
                self.size = int.from_bytes(part, "big")
            else:
                self.size, found = None, found + part

    def _meet(self, nonce):
        other = {"agent": "launcher", "launcher": "agent"}[self.who]
        self.ours = self._key(self.who, self.nonce, nonce), count()
        self.theirs = self._key(other, nonce, self.nonce), count()

    def _key(self, who, own, other):
        return hmac.digest(self.secret, who.encode() + own + other, "sha256")

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
        number, link = int(os.environ.get(variable, "-1")), dial(invitation.strip())
    except (OSError, KeyError, ValueError) as error:
        # Not the invitation itself: this is printed to a log.
        print(f"dial: no way to the launcher: {error}", file=sys.stderr, flush=True)
        return 1
    agent.serve(link, number=number, host=socket.gethostname() or "?")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
