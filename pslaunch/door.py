"""The door at which agents knock that a scheduler has started: see `dial.py`.

A job of a scheduler has no pipe to its launcher, so its agents come by TCP. The door is
open on one address, while a start gathers its agents, and lets in who knows the secret
of that start. It proves as much of itself, for an agent does what it is told. What is
said afterwards is signed: see `signed.py`.
"""

import hmac
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field

from .proof import GREETING, LIMIT, PATIENCE, proof
from .signed import Signed

#: Strangers who are heard at a time; the others wait.
AT_ONCE = 100


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
