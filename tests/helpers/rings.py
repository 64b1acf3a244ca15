"""Rings whose ranks are threads of a test, with sockets of their own."""

import socket
from concurrent.futures import ThreadPoolExecutor

from d2l_ext.kvstore import ring


def free_places(n):
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    places = [server.getsockname() for server in servers]
    for server in servers:
        server.close()
    return places


def on_ring(n, work, shared=False, deadline=20.0, tokens=None):
    """What `work(ring)` returns on each of n ranks, or the exception that it raises."""
    places = free_places(n)

    def rank_of(rank):
        token = tokens[rank] if tokens else "secret"
        try:
            with ring.connect(rank, places, token, deadline, shared) as r:
                return work(r)
        except Exception as error:  # noqa: BLE001
            return error

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(rank_of, range(n)))
