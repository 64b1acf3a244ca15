"""A channel between the launcher and an agent, `agent.py`: messages, both ways.

Messages are lines of JSON; one with a `size` has so many bytes after it.
"""

import json
import os
import threading
import time

GREETING = b"d2l_ext agent\n"
#: Bytes that are read at a time, so that one channel does not hold up all others.
AT_ONCE = 1 << 20


class Forged(OSError):
    """What arrived is not what was sent."""


class Channel:
    """File descriptors `read` and `write`, perhaps the same; they are closed with it.

    `host`: the name by which the user knows the other end. `role`: 'worker' or
    'server' when the place of its process was chosen for one, else None. `signed`: a
    `door.Signed`, where others could write into the channel.
    """

    def __init__(self, read, write, host=None, role=None, signed=None):
        self.read, self.write, self.host, self.role = read, write, host, role
        self.seal = signed.seal if signed else bytes
        self.unseal = signed.unseal if signed else bytes
        self.inbox, self.outbox = b"", b""
        self.noise = b""  # what came before the greeting
        self.greeted = self.ended = False
        self.forged = None  # how somebody else has spoken, or made them break off
        self.heard = time.monotonic()
        self.lock = threading.Lock()  # of what is sent: beats have their own thread
        self.address = self.node = None  # as the crew finds out, and decides
        for file in {read, write}:
            os.set_blocking(file, False)

    def send(self, payload=b"", **message):
        """Put a message on its way, and then these bytes."""
        line = json.dumps(message).encode() + b"\n" if message else b""
        with self.lock:
            self.outbox += self.seal(line + payload)
            self._flush()

    def pump(self):
        """Move what can be moved; return new messages: pairs (dict, bytes)."""
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
        except OSError:  # nobody reads any more; what was said before may be there
            self.outbox = b""

    def _fill(self):
        if self.ended:
            return
        try:
            new = os.read(self.read, AT_ONCE)
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
        """Close both ends: the agent ends what it has started."""
        with self.lock:
            self.ended = True
            for file in {self.read, self.write} - {None}:
                os.close(file)
            self.read = self.write = None
