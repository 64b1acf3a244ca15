"""Links: how a host is plugged into a switch, cut off, and made slow or lossy."""

import re
from contextlib import suppress

#: Subnets of the first and the second interface, eth0 and eth1. They collide with no
#: network of the machine's: nothing leads from a box to the outside.
SUBNETS = ("10.77.0", "10.78.0")
#: What a shaped link holds before it drops: a burst at full speed, and a queue.
BURST, QUEUE = "64kb", "200ms"


def plug(switch, host, number, place):
    """Connect interface eth`number` of machine `host` to bridge br`number`."""
    address = f"{SUBNETS[number]}.{place}"
    # A fixed address of the card: others may keep it when the host comes back.
    card = f"02:00:00:00:{number:02x}:{place:02x}"
    port = f"{host.name}.{number}"
    switch.ip(
        f"link add {port} type veth peer name eth{number} address {card} "
        f"netns {host.pid}",
        f"link set {port} master br{number} up",
    )
    # Each packet is one of 1,500 bytes: such a card would hand over 64 KB at a time,
    # and what is lost, or waits in a queue, would be that much.
    host.ip("link set lo up", f"link set eth{number} gso_max_segs 1",
            f"addr add {address}/24 dev eth{number}",
            f"link set eth{number} up")


def cut(switch, name, number):
    """Pull the cable of eth`number`: nothing leaves the host, and nothing gets in."""
    switch.ip(f"link set {name}.{number} down")


def unplug(switch, name, number):
    """Remove the link of a host that is gone; the system takes its time to do so."""
    with suppress(OSError):
        switch.ip(f"link del {name}.{number}")


def mend(switch, name, number):
    """Plug the cable of eth`number` in again."""
    switch.ip(f"link set {name}.{number} up")


def shape(switch, host, others, number, rate=None, delay=None, loss=0.0):
    """Shape eth`number` of a machine, in both directions; all None removes it.

    `rate`: of `tc`, as in '100mbit'. `delay`: as in '20ms', once on the way out.
    `loss`: the probability that a packet is dropped, in each direction; `others`: the
    machines that drop what comes from this one. Raises `ValueError` for a wrong
    value, `OSError` for what the kernel lacks.
    """
    for name, value in (("rate", rate), ("delay", delay)):
        if value is not None and not re.fullmatch(r"[0-9.]+[a-z]+", value):
            raise ValueError(f"{name}={value!r}: give it with a unit, as tc does")
    if not 0 <= (loss or 0) < 1:
        raise ValueError(f"loss={loss!r}: give a probability, from 0 to less than 1")
    ends = [(host, f"eth{number}"), (switch, f"{host.name}.{number}")]
    for machine, port in ends:
        if " noqueue " not in machine.tool(["tc", "qdisc", "show", "dev", port]):
            machine.tool(["tc", "qdisc", "del", "dev", port, "root"])
        if rate:
            machine.tool(["tc", "qdisc", "add", "dev", port, "root", "handle", "1:",
                          "tbf", "rate", rate, "burst", BURST, "latency",
                          QUEUE])
    if delay:
        _delay(host, f"eth{number}", delay, below="1:1" if rate else None)
    lose([host, *others], host.name, number, address(host, number), loss or 0)


def _delay(host, port, delay, below):
    place = ["parent", below] if below else ["root"]
    try:
        host.tool(["tc", "qdisc", "add", "dev", port, *place, "netem", "delay", delay])
    except OSError as error:
        raise OSError(f"this kernel delays no packets, it has no netem ({error}): "
                      "leave delay out") from None


def address(host, number):
    """The address of eth`number` of a machine."""
    said = host.tool(["ip", "-4", "-o", "address", "show", "dev", f"eth{number}"])
    return re.search(r"inet ([0-9.]+)/", said)[1]


def lose(machines, name, number, source, loss):
    """Let `machines` drop what arrives at their eth`number`: on the machine `name` all
    packets, on the others those from `source`, its address; 0 ends it.

    Where packets arrive, the firewall can throw them away and nobody is told. On their
    way out it can't: TCP would hear of it at once, and send them again.
    """
    chain = f"loss-{name}-eth{number}"
    for machine in machines:
        rules = [f":{chain} - [0:0]"]  # made, or emptied
        if f"-N {chain}\n" not in machine.tool(["iptables", "-w", "-S"]):
            if not loss:
                continue
            whose = "" if machine.name == name else f"-s {source}"
            rules.append(f"-A INPUT -i eth{number} {whose} -j {chain}")
        if loss:
            rules.append(f"-A {chain} -m statistic --mode random "
                         f"--probability {loss} -j DROP")
        text = "\n".join(["*filter", *rules, "COMMIT", ""])
        machine.tool(["iptables-restore", "-w", "--noflush"], text)


def counted(pid, interface):
    """(bytes sent, bytes received) by an interface of a machine since it is up."""
    with open(f"/proc/{pid}/net/dev") as file:
        for line in file:
            name, _, numbers = line.partition(":")
            if name.strip() == interface:
                row = [int(word) for word in numbers.split()]
                return row[8], row[0]
    raise ValueError(f"there is no interface {interface!r}")
