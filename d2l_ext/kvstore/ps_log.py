"""A parser for the log of ps-lite: the nodes that joined, and every message.

`PS_VERBOSE=1` makes a node log its connections, `PS_VERBOSE=2` also each message that
it sends or receives. A log is the output of one process, with standard error.
"""

import re
from dataclasses import dataclass, replace

#: The scheduler's id. Servers are 8, 10, 12, …, workers 9, 11, 13, …
SCHEDULER = 1

# Another thread may write between the header of a line, its text and its end. Each text
# is written in one piece, and only texts are parsed.
_NODE = re.compile(r"role=(\w+),(?: id=(\d+),)? ip=([^,]+), port=(-?\d+)")
_EVENT = re.compile(
    r"(?P<listens>Bind to )"
    r"|assign rank=(?P<numbered>\d+) to node "
    r"|(?P<connected>is connected to others|the scheduler is connected to)"
    r"|(?P<waits>Barrier count for )"
    r"|(?P<stops>is stopping)"
)
_MESSAGE = re.compile(
    r"(?P<sender>\?|\d+) => (?P<receiver>\d+)\. Meta: request=(?P<request>\d)"
    r"(?:, timestamp=(?P<timestamp>\d+))?, "
    r"(?:control=\{ cmd=(?P<control>\w+)(?:, node=\{(?P<nodes>[^}]*)\})?"
    r"|app_id=\d+, customer_id=\d+, simple_app=(?P<command>\d), push=(?P<push>\d)"
    r", head=\d+(?:, data_type=\{[^}]*\} Body:(?P<sizes>(?: data_size=\d+)+))?)"
)


@dataclass(frozen=True)
class Node:
    """A process of the job. `id`: None until the scheduler assigns it.

    `ip`: an address or a host's name. `port`: −1 if none could be bound.
    """

    role: str
    id: int
    ip: str
    port: int


@dataclass(frozen=True)
class Event:
    """An event of the node that wrote the log.

    `kind`: `'listens'`, `'numbered'` (at the scheduler), `'connected'`, `'waits'` (at
    the scheduler: another node has reached a barrier) or `'stops'`. `node`: the one
    that listens or is numbered.
    """

    kind: str
    node: Node = None


@dataclass(frozen=True)
class Message:
    """A message from the node with id `sender` to that with id `receiver`.

    `kind`: `'push'`, `'pull'`, `'command'`, or one of ps-lite's own, `'add_node'`,
    `'barrier'`, `'terminate'`, … `request`: whether it expects an answer. `timestamp`:
    a count; the answer to a push, pull or command has that of its request. `sent`:
    whether the log's node is the sender. `sizes`: bytes of keys, values and lengths,
    where present.
    """

    sender: int
    receiver: int
    kind: str
    request: bool
    timestamp: int
    sent: bool
    sizes: tuple = ()

    @property
    def nbytes(self):
        """Bytes of the payload. The header, some tens of bytes, is not logged."""
        return sum(self.sizes)

    @property
    def values(self):
        """Bytes of only the values: 4 per element of a float32 array."""
        return self.sizes[1] if len(self.sizes) > 1 else 0


def role(node_id):
    """Return `'scheduler'`, `'server'` or `'worker'`, the role of this node id."""
    return "scheduler" if node_id == SCHEDULER else ("server", "worker")[node_id % 2]


def rank(node_id):
    """Return the rank of a server or worker: 0 for ids 8 and 9, 1 for 10 and 11, …"""
    return node_id // 2 - 4


def events(text):
    """Return the `Event`s in `text`, a log with `PS_VERBOSE` 1 or 2, in the log's
    order.

    Developed in the chapter *Roles, keys and shards*.
    """
    return [_event(match, text) for match in _EVENT.finditer(text)]


def messages(text):
    """Return the `Message`s in `text`, a log with `PS_VERBOSE=2`, in the log's order.

    ps-lite writes `?` for a node without a number, and for the log's own node in the
    messages that it sends. Here both have the number that the scheduler assigned.

    Raises `ValueError` when there are messages, but not the node's first line or the
    scheduler's message with the numbers: the log is truncated, or the job never became
    ready.
    Source: `Van` and `Message::DebugString` of ps-lite, as in MXNet 1.9.1.
    Developed in the chapter *Roles, keys and shards*.
    """
    found = list(_MESSAGE.finditer(text))
    known = [node for match in found for node in _nodes(match["nodes"]) if node.id]
    ids = {(node.ip, node.port): node.id for node in known}
    own = next((e.node for e in events(text) if e.kind == "listens"), None)
    me = ids.get((own.ip, own.port)) if own else None
    if found and me is None:
        raise ValueError(
            "the log does not contain the number of its node: it is truncated, or the "
            "job did not become ready. Give the whole output of one process."
        )
    return [_message(match, me, ids) for match in found]


def _event(match, text):
    node = None
    if match["listens"] or match["numbered"]:
        (node,) = _nodes(_NODE.search(text, match.end())[0])
    if match["numbered"]:
        node = replace(node, id=int(match["numbered"]))
    return Event(match.lastgroup, node)


def _message(match, me, ids):
    sender, receiver = match["sender"], int(match["receiver"])
    joins = sender == "?" and match["control"] == "ADD_NODE" and receiver == SCHEDULER
    by_me = sender == "?" and not (joins and me == SCHEDULER)
    if joins:
        (node,) = _nodes(match["nodes"])
        sender = ids[node.ip, node.port]
    return Message(
        sender=me if by_me else int(sender),
        # The first message to a node carries a placeholder for its number.
        receiver=receiver if receiver in ids.values() else me,
        kind=_kind(match),
        request=match["request"] == "1",
        timestamp=_number(match["timestamp"]),
        sent=by_me,
        sizes=tuple(int(n) for n in re.findall(r"\d+", match["sizes"] or "")),
    )


def _kind(match):
    if match["control"]:
        return match["control"].lower()
    if match["command"] == "1":
        return "command"
    return "push" if match["push"] == "1" else "pull"


def _nodes(text):
    found = _NODE.findall(text or "")
    return [Node(role, _number(id), ip, int(port)) for role, id, ip, port in found]


def _number(text):
    return int(text) if text else None
