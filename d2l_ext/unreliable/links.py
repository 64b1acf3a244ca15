"""Hosts whose network behaves like a real one, before it is made worse."""

from contextlib import contextmanager

from .. import box


@contextmanager
def hosts(count, algorithm="cubic", **options):
    """A box of `count` hosts, with packets of real size and one congestion control.

    The interfaces of a box hand over up to 64 KB at a time; here they send packets of
    1,500 bytes, so that a packet that is lost is one packet. `algorithm`: of TCP, as
    Linux names it; the systems of readers differ in their default. `options`: of
    `box.Cluster`. Yields the cluster.
    """
    with box.Cluster(count, **options) as cluster:
        for host in cluster.hosts:
            prepare(host, algorithm)
        yield cluster


def prepare(host, algorithm, *options):
    """Set up the route of `host` on eth0; `options`: more words of `ip route`."""
    network = host.address.rpartition(".")[0] + ".0/24"
    host.machine.tool(["ip", "link", "set", "eth0", "gso_max_segs", "1"])
    host.machine.tool(["ip", "route", "change", network, "dev", "eth0", "src",
                       host.address, "congctl", algorithm, *options])  # fmt: skip


def limit(cluster, mbit):
    """Give the links of all hosts `mbit` Mbit/s, in each direction."""
    for host in cluster.hosts:
        host.shape(rate=f"{mbit}mbit")


def lose(cluster, probability):
    """Lose each packet between hosts with this probability; 0 undoes it.

    Every packet that arrives is thrown away or not, by the firewall. On its way out it
    must not be: there the sender's own TCP would be told at once, and nothing is lost.
    """
    for host in cluster.hosts:
        host.machine.tool(["iptables", "-w", "-F", "INPUT"])
        if probability:
            host.machine.tool([
                "iptables", "-w", "-A", "INPUT", "-i", "eth0", "-m", "statistic",
                "--mode", "random", "--probability", str(probability), "-j", "DROP",
            ])  # fmt: skip
