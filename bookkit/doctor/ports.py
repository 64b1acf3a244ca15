"""Whether processes of this machine can find and reach each other."""

import socket
import threading

from .finding import BAD, NOTE, Finding

LOOPBACK = "127.0.0.1"
PATIENCE = 0.5  # seconds: a name server that does not answer takes many more


def examine(resolve=socket.gethostbyname, listener=socket.socket):
    """Return the findings about loopback ports and this host's own name."""
    return [_ports(listener), _name(resolve)]


def _ports(listener):
    try:
        with listener() as server, listener() as client:
            server.bind((LOOPBACK, 0))
            server.listen(1)
            client.settimeout(PATIENCE)
            client.connect(server.getsockname())
    except OSError as error:
        text = f"no connection on {LOOPBACK}: {error}"
        advice = "allow loopback: chapters on the distributed kvstore cannot run"
        return Finding("ports", text, BAD, advice)
    return Finding("ports", f"free ports on {LOOPBACK} can be connected to")


def _name(resolve):
    name, found = socket.gethostname(), []

    def look_up():
        try:
            found.append(resolve(name))
        except OSError:
            found.append(None)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if found and found[0]:
        return Finding("host name", f"{name} is {found[0]}")
    text = f"{name} has no address: jobs over several machines start slowly"
    return Finding("host name", text, NOTE, f"add {name} to /etc/hosts")
