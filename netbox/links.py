"""Links: plugging a host into a switch, cutting it off, making it slow or lossy."""

import re
from contextlib import suppress

#: Subnets of eth0 and eth1. They cannot collide with a network of this machine, because
#: a box has no connection to the outside.
SUBNETS = ("10.77.0", "10.78.0")
#: A shaped link passes a burst at full speed, and queues packets before it drops them.
BURST, QUEUE = "64kb", "200ms"


def plug(switch, host, number, place):
    """Connect interface eth`number` of machine `host` to bridge br`number`."""
    address = f"{SUBNETS[number]}.{place}"
    # A fixed MAC address, which others may remember when the host comes back.
    card = f"02:00:00:00:{number:02x}:{place:02x}"
    port = f"{host.name}.{number}"
    switch.ip(
        f"link add {port} type veth peer name eth{number} address {card} "
        f"netns {host.pid}",
        f"link set {port} master br{number} up",
    )
    # Send packets of 1,500 bytes: by default such a card hands over 64 KB at a time,
    # and would lose or queue that much at once.
    host.ip("link set lo up", f"link set eth{number} gso_max_segs 1",
            f"addr add {address}/24 dev eth{number}",
            f"link set eth{number} up")


def cut(switch, name, number):
    """Pull the cable of eth`number`: no packet leaves or reaches the host."""
    switch.ip(f"link set {name}.{number} down")


def unplug(switch, name, number):
    """Remove the link of a host that is gone, before the system does."""
    with suppress(OSError):
        switch.ip(f"link del {name}.{number}")


def mend(switch, name, number):
    """Plug the cable of eth`number` in again."""
    switch.ip(f"link set {name}.{number} up")


def shape(switch, host, others, number, rate=None, delay=None, loss=0.0):
    """Shape eth`number` of a machine in both directions; without values, undo that.

    `rate`: in the units of `tc`, such as '100mbit'. `delay`: such as '20ms', only for
    outgoing packets. `loss`: the probability that a packet is dropped, in each
    direction; `others`: the machines that drop its outgoing packets. Raises
    `ValueError` for a value of another form, `OSError` for an interface that the
    machine lacks, a unit that `tc` does not know and a feature that the kernel lacks.
    After an `OSError` the link may be shaped in part: call it without values.
    """
    for name, value in (("rate", rate), ("delay", delay)):
        if value is not None and not re.fullmatch(r"[0-9.]+[a-z]+", value):
            raise ValueError(f"{name}={value!r}: give a number and a unit of tc")
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
        if "kind is unknown" not in str(error):
            raise
        raise OSError(f"this kernel cannot delay packets, because it has no netem "
                      f"({error}): leave delay out") from None


def address(host, number):
    """Return the IPv4 address of eth`number` on the machine `host`."""
    said = host.tool(["ip", "-4", "-o", "address", "show", "dev", f"eth{number}"])
    return re.search(r"inet ([0-9.]+)/", said)[1]


def lose(machines, name, number, source, loss):
    """Make `machines` drop packets that arrive at their eth`number`; 0 ends that.

    The machine `name` drops any packet, the others only those from `source`, its
    address. Packets are dropped by the firewall where they arrive, which no sender
    notices. For outgoing packets, TCP would notice at once, and send them again.
    """
    chain = f"loss-{name}-eth{number}"
    for machine in machines:
        rules = [f":{chain} - [0:0]"]  # create or empty the chain
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


def byte_counters(pid, interface):
    """Return (bytes sent, bytes received) by an interface since its machine started."""
    with open(f"/proc/{pid}/net/dev") as file:
        for line in file:
            name, _, numbers = line.partition(":")
            if name.strip() == interface:
                row = [int(word) for word in numbers.split()]
                return row[8], row[0]
    raise ValueError(f"there is no interface {interface!r}")
