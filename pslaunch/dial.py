"""What a job of mpi, Slurm, Grid Engine, YARN or Kubernetes runs, so many times:
`python -m pslaunch.dial VARIABLE [FILE]`.

It dials the launcher's door (`door.py`), each side proves to the other that it knows
the secret of this start, and from there on it is an agent, `agent.py`. `VARIABLE`: the
one in which the scheduler says which of the copies this is. The invitation, address,
port and secret, stands in the variable `D2L_EXT_DOOR`, or in FILE, which only its owner
may read; on no command line. Standard library alone.
"""

import hmac
import os
import platform
import secrets
import socket
import sys
from pathlib import Path

from . import agent
from .proof import DOOR, GREETING, LIMIT, PATIENCE, proof
from .signed import Signed


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
