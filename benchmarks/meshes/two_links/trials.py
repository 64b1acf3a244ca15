"""The measurements of the chapter: one ring and a hierarchy, on links of two speeds."""

import json
import secrets
import subprocess
import sys
from pathlib import Path
from statistics import median

import netbox as box

ROOT = Path(__file__).parents[3]


def in_a_box(hosts=2, devices=4, size=500_000, outer=20, ratio=10, repeats=3):
    """Run both ways on `hosts` of `devices` each, every device with two cards of its
    own.

    A device is a host of the box: its eth0 is on the inner network, of `ratio` times
    `outer` Mbit/s, its eth1 on the outer one. `size`: numbers in float32. Returns what
    `run` does, with what the cards sent.
    """
    with box.Cluster(hosts * devices, second_interface=True) as cluster:
        for host in cluster.hosts:
            for card, address, rate in (("eth0", host.address, ratio * outer),
                                        ("eth1", host.second_address, outer)):
                network = address.rpartition(".")[0] + ".0/24"
                host.machine.tool(["ip", "route", "change", network, "dev", card,
                                   "src", address, "congctl", "cubic"])
                host.shape(rate=f"{rate}mbit", interface=card)
        addresses = [[host.address, host.second_address] for host in cluster.hosts]
        starts = [host.popen for host in cluster.hosts]
        return run(hosts, devices, addresses, size, repeats, starts)


def run(hosts, devices, addresses, size, repeats, starts):
    """Run a job with a process for each device; return a row for each way.

    `starts`: for each device the function that starts its process, as `Popen`. In a
    row: `seconds`, the median over `repeats` of the time until all had the sum; `sums`,
    all values that any device had at the end; for each device `sent`, the bytes that it
    gave to each ring, and `cards`, those that left by each interface.
    """
    told = {"hosts": hosts, "devices": devices, "addresses": addresses, "size": size,
            "repeats": repeats, "token": secrets.token_hex()}
    running = [
        start([sys.executable, "-m", "benchmarks.meshes.two_links.node",
               json.dumps({**told, "rank": rank})],
              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for rank, start in enumerate(starts)
    ]
    try:
        said = [process.communicate(timeout=600) for process in running]
    finally:
        for process in running:
            process.kill()
    failed = [err.strip()[-500:] for _, err in said if err]
    if failed or any(process.returncode for process in running):
        raise RuntimeError("a device failed: " + "\n".join(failed))
    found = [json.loads(out) for out, _ in said]
    return {way: _together([rows[way] for rows in found]) for way in found[0]}


def _together(rows):
    return {
        "seconds": median(map(max, zip(*(row["seconds"] for row in rows)))),
        "sums": sorted({x for row in rows for x in row["sums"]}),
        "sent": [row["sent"] for row in rows],
        "cards": [row["cards"] for row in rows],
    }
