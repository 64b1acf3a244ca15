"""Hosts whose network behaves like a real one, before it is made worse."""

from contextlib import contextmanager

import netbox as box


@contextmanager
def hosts(count, algorithm="cubic", **options):
    """A box of `count` hosts, all with one congestion control.

    `algorithm`: of TCP, as Linux names it; the systems of readers differ in their
    default. `options`: of `box.Cluster`. Yields the cluster.
    """
    with box.Cluster(count, **options) as cluster:
        for host in cluster.hosts:
            prepare(host, algorithm)
        yield cluster


def prepare(host, algorithm, *options):
    """Set up the route of `host` on eth0; `options`: more words of `ip route`."""
    network = host.address.rpartition(".")[0] + ".0/24"
    host.machine.tool(["ip", "route", "change", network, "dev", "eth0", "src",
                       host.address, "congctl", algorithm, *options])  # fmt: skip


def limit(cluster, mbit):
    """Give the links of all hosts `mbit` Mbit/s, in each direction."""
    for host in cluster.hosts:
        host.shape(rate=f"{mbit}mbit")


def lose(cluster, probability):
    """Lose each packet between hosts with this probability; 0 undoes it.

    A packet passes the links of two hosts. Takes the place of `limit`.
    """
    for host in cluster.hosts:
        host.shape(loss=1 - (1 - probability) ** 0.5)
