"""A cluster in a box: hosts, networks and ssh on this one machine.

    import netbox as box

    with box.Cluster(hosts=3) as cluster:
        cluster.head.run(["ssh", "h2", "hostname"]).stdout      # 'h2'
        cluster.hosts[1].shape(rate="100mbit")
        cluster.hosts[2].power_off()

Each host has namespaces of its own for network, processes, mounts and name, and an
sshd; the kernel, the files and the processors are this machine's. For a terminal there
is `python -m netbox`. It needs Linux, and root or user namespaces: `box.why_not()`
says what is in the way.

| file | what it holds |
|---|---|
| `cluster` | the box: its hosts, its switch, its folder |
| `host` | switching on and off, running commands, shaping links |
| `keys` | keys and configuration of ssh |
| `links` | how a host is plugged in, cut off, made slow or lossy |
| `machine` | namespaces of one machine, and whether they can be had here |
| `inside` | the program that holds a machine open, or runs a command in it |

Nothing of this book is imported. Developed in the chapter *Launching jobs*.
"""

from .cluster import Cluster
from .host import Host
from .machine import why_not

__all__ = ["Cluster", "Host", "why_not"]
