"""A cluster in a box: hosts, networks and ssh on this one machine.

    import netbox

    with netbox.Cluster(hosts=3) as cluster:
        cluster.head.run(["ssh", "h2", "hostname"]).stdout      # 'h2'
        cluster.hosts[1].shape(rate="100mbit")
        cluster.hosts[2].power_off()

Each host has its own namespaces for network, processes, mounts and name, and its own
sshd; it shares the machine's kernel, files and processors. `python -m netbox` is the
command line. A box needs Linux, and root or user namespaces: `netbox.why_not()` says
what is missing.

| file | what it holds |
|---|---|
| `cluster` | the box: its hosts, its switch, its folder |
| `host` | switching a host on and off, running commands, shaping links |
| `keys` | ssh's keys and configuration |
| `links` | plugging a host in, cutting it off, making it slow or lossy |
| `machine` | the namespaces of one machine, and whether this system allows them |
| `inside` | the program that holds a machine open, or runs a command in it |

It imports no other package of this book. Developed in the chapter *Launching jobs*.
"""

from .cluster import Cluster
from .host import Host
from .machine import why_not

__all__ = ["Cluster", "Host", "why_not"]
