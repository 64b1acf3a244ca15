"""Messages that nobody on their way can change, cut, leave out, repeat or reorder.

    a message: its size | signature | its bytes | signature

What comes through the door is TCP, into which others on the network can write. So each
end has a key for what it says, made of the secret of this start and of the words of
both ends at the door: no two channels share one. A signature is HMAC-SHA256 of the
number of signatures before it and of what it stands behind. Contents stay readable.

Standard library alone.
"""

import hmac
from itertools import count

from .proof import proof

SIZE, SIGNATURE = 4, 32  # bytes


class Forged(OSError):
    """What arrived is not what was sent."""


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
