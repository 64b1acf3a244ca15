"""Channels between the launcher and its agents, and the door by which some come.

A message is a line of JSON; if it has a `size`, that number of bytes follows. An agent
that the launcher starts itself has a pipe to it. One that a scheduler starts connects
by TCP to the *door*, which is open on one address while a start gathers its agents.
Others on the network can reach that address and tamper with its connections, so each
message there is signed:

    each end first sends its nonce      a message: size | signature | text | signature

A nonce is drawn anew for each connection. Each end signs with a key of its own, derived
from the secret of this start and both nonces. A signature is the HMAC-SHA256 of the
number of signatures before it and of the part that it follows, so no one on the way can
change, cut, drop, repeat or reorder messages. The first valid message proves that its
sender knows the secret: then the launcher admits an agent, and an agent starts to obey.
Contents stay readable.
"""

import hmac
import json
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from itertools import count

GREETING = b"d2l_ext agent\n"
#: Seconds between two heartbeats, and after which a silent end counts as gone.
BEAT, SILENCE = 2.0, 10.0
#: Bytes read at a time, so that one channel does not hold up the others.
READ = 1 << 20


class Forged(OSError):
    """A message that was changed in transit."""


class Channel:
    """File descriptors `read` and `write`, perhaps the same; they are closed with it.

    `host`: the user's name for the other end. `role`: 'worker' or 'server' if the host
    was chosen for one, else None. `signed`: a `Signed`, where others could write into
    the channel.
    """

    def __init__(self, read, write, host=None, role=None, signed=None):
        self.read, self.write, self.host, self.role = read, write, host, role
        self.seal = signed.seal if signed else bytes
        self.unseal = signed.unseal if signed else bytes
        self.inbox, self.outbox = b"", b""
        self.noise = b""  # bytes before the greeting
        self.greeted = self.ended = False
        self.forged = None  # why a message was not believed
        self.heard = time.monotonic()
        self.lock = threading.Lock()  # for sending: beats have a thread
        self.address = self.node = None  # set by the crew
        for file in {read, write}:
            os.set_blocking(file, False)

    def send(self, payload=b"", **message):
        """Send a message, followed by the bytes of `payload`."""
        line = json.dumps(message).encode() + b"\n" if message else b""
        with self.lock:
            self.outbox += self.seal(line + payload)
            self._flush()

    def pump(self):
        """Send and receive without waiting; return new messages as (dict, bytes)."""
        with self.lock:
            self._flush()
        self._fill()
        if not self.greeted:
            before, found, after = self.inbox.partition(GREETING)
            if not found:
                return []
            self.greeted, self.noise, self.inbox = True, before, after
        return list(self._messages())

    def _flush(self):
        try:
            while self.outbox and self.write is not None:
                self.outbox = self.outbox[os.write(self.write, self.outbox) :]
        except BlockingIOError:
            pass
        except OSError:  # the other end is closed; its last messages may still arrive
            self.outbox = b""

    def _fill(self):
        if self.ended:
            return
        try:
            new = os.read(self.read, READ)
        except BlockingIOError:
            return
        except OSError:  # an end, too
            new = b""
        try:
            said, self.ended = self.unseal(new), not new
            self.inbox += said
            self.heard = time.monotonic() if said else self.heard
        except Forged as error:
            self.ended, self.forged = True, str(error)

    def _messages(self):
        while b"\n" in self.inbox:
            line, _, rest = self.inbox.partition(b"\n")
            message = json.loads(line)
            size = message.get("size", 0)
            if len(rest) < size:
                return
            self.inbox = rest[size:]
            yield message, rest[:size]

    def close(self):
        """Close the channel; an agent then ends the processes it has started."""
        with self.lock:
            self.ended = True
            for file in {self.read, self.write} - {None}:
                os.close(file)
            self.read = self.write = None


# ---- The door ----

#: The variable with the invitation, 'ADDRESS:PORT:SECRET', the secret in hex.
DOOR = "D2L_EXT_DOOR"
PATIENCE = 30.0  # seconds for the other end to answer
#: Unproven connections served at a time; further ones wait.
AT_ONCE = 100
NONCE, SIZE, SIGNATURE = 16, 4, 32  # bytes


class Door:
    """Listens on `address`; raises `OSError` if it cannot.

    `invitation`: 'ADDRESS:PORT:SECRET', to be shown to agents only.
    """

    def __init__(self, address):
        self.secret = secrets.token_hex(32)
        self.socket = socket.create_server((address, 0), backlog=AT_ONCE)
        self.socket.setblocking(False)
        place = self.socket.getsockname()
        self.invitation = f"{place[0]}:{place[1]}:{self.secret}"
        self.strangers = []  # channels that have not proved the secret

    def admitted(self):
        """Return the agents that have proved the secret since the last call.

        Returns a list of (`Channel`, number).
        """
        self._accept()
        found = []
        for link in list(self.strangers):
            messages = link.pump()
            if messages:
                said, _ = messages[0]  # the rest are beats
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
                with suppress(OSError):  # it has hung up; reading will show that
                    line.send(signed.nonce)
                fd = line.detach()
                self.strangers.append(Channel(fd, fd, signed=signed))

    def close(self):
        """Stop listening, and drop unproven connections."""
        for link in self.strangers:
            link.close()
        self.strangers.clear()
        self.socket.close()


def dial(invitation):
    """Connect an agent to the launcher: a `Channel`. Raises `OSError` on failure."""
    address, port, secret = invitation.split(":")
    signed = Signed("agent", secret)
    line = socket.create_connection((address, int(port)), PATIENCE)
    with line, line.makefile("rb") as file:
        theirs = file.read(NONCE)
        if len(theirs) < NONCE:
            raise OSError("the launcher closed the connection")
        signed.unseal(theirs)
        line.sendall(signed.nonce)
        fd = line.detach()
    return Channel(fd, fd, signed=signed)


class Signed:
    """Signs and verifies the messages of one end of a channel.

    `who`: this end, 'agent' or 'launcher'. `secret`: in hex. `nonce`: the first bytes
    to send, unsigned.
    """

    def __init__(self, who, secret):
        self.who, self.secret = who, bytes.fromhex(secret)
        self.nonce = secrets.token_bytes(NONCE)
        self.ours = self.theirs = None  # (key, counter) of each end
        self.inbox, self.size = b"", None  # of the message being received

    def seal(self, message):
        """Return a message's bytes to send. Messages must be sent in this order."""
        parts = len(message).to_bytes(SIZE, "big"), message
        return b"".join(part + _signature(part, *self.ours) for part in parts)

    def unseal(self, new):
        """Return the messages that the bytes `new` complete, joined.

        The other end's nonce comes first; empty `new` means the connection has ended.
        Raises `Forged`.
        """
        if not new and (self.inbox or self.size is not None):
            raise Forged("the connection ended in the middle of a message")
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
            raise Forged("a message was changed, dropped or repeated in transit: "
                         "another process can write into this connection")
        self.inbox = self.inbox[end:]
        return part


def _signature(part, key, numbers):
    return hmac.digest(key, b"%d\n" % next(numbers) + part, "sha256")
