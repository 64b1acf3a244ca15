"""The series of the chapter: what is measured on lossy, slow and double networks.

Each is a function without arguments, or with some, whose result `stored` can keep.
"""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pslaunch as launch

from . import deaf, job, wire, work

LOSSES = (0.0, 0.01, 0.05)
#: Time-outs of `PS_RESEND_TIMEOUT` in milliseconds: the default, and a patient one.
DEFAULT, PATIENT = 1000, 20_000
RESEND = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": PATIENT}

#: A name, the number of servers, the type of store, and whether it compresses.
ONE_SERVER = [
    ("plain", 1, "dist_sync", False),
    ("2-bit compression", 1, "dist_sync", True),
    ("dist_async", 1, "dist_async", False),
]
TWO_SERVERS = [
    ("two servers", 2, "dist_sync", False),
    ("two servers, compression", 2, "dist_sync", True),
]


def row_of(outcome):
    """Return what all trials tell of a job of `work.train`."""
    results = outcome.results or []
    steps = list(zip(*(r["seconds"] for r in results)))[1:]
    return {
        "finished": outcome.results is not None,
        "weights": sorted({r["weights"] for r in results}),
        "seconds_per_step": median(map(max, steps)) if steps else None,
        "slowest_step": max(map(max, steps)) if steps else None,
        "seconds": round(outcome.seconds, 1),
        "tcp": outcome.tcp,
        "said": outcome.said(),
        "aborted": outcome.aborted(),
        "codes": outcome.codes,
    }


def loss(timeout=None, losses=LOSSES, steps=6, algorithm="cubic", options=()):
    """Run LeNet on three hosts that lose packets; return a row for each probability.

    `timeout`: `PS_RESEND_TIMEOUT` in ms; None for a job without `PS_RESEND`.
    `options`: of all routes, see `job.prepare`.
    """
    env = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": timeout} if timeout else None
    rows = []
    with job.hosts(3, algorithm) as cluster:
        for host in cluster.hosts:
            job.prepare(host, algorithm, *options)
        for probability in losses:
            job.lose(cluster, probability)
            found = job.run(cluster, work.train, steps, env=env, deadline=150)
            rows.append({"loss": probability, "timeout": timeout, **row_of(found)})
    return rows


def one_slow_worker(fast=100, slow=10, size=100_000, seconds=10):
    """Return each worker's steps in some seconds, if one worker's link is slow."""
    rows = []
    for kv_type in ("dist_sync", "dist_async"):
        with job.hosts(3) as cluster:
            job.limit(cluster, fast)
            cluster.hosts[2].shape(rate=f"{slow}mbit")
            found = job.run(cluster, work.for_a_while, size, seconds,
                            kv_type=kv_type).check()
        rows.append({"type": kv_type, "steps": sorted(found.results, reverse=True)})
    return rows


def exchanges(mbit, sizes, steps, ways):
    """Run exchanges on links of `mbit` Mbit/s, in `ways` with equally many servers."""
    rows = []
    with job.hosts(ways[0][1] + 2) as cluster:
        job.limit(cluster, mbit)
        for name, servers, kv_type, compress in ways:
            found = job.run(cluster, work.exchange, sizes, steps, compress,
                            num_servers=servers, kv_type=kv_type)
            rows.append({
                "name": name, "mbit": mbit, "measured": exchange_seconds(found),
                "predicted": wire.predicted(sizes, mbit, 2, servers, compress),
            })
    return rows


def batches(mbit, examples=256, sizes=(32, 64, 128)):
    """Run LeNet on links of `mbit` Mbit/s: seconds for `examples` per worker."""
    rows = []
    with job.hosts(3) as cluster:
        job.limit(cluster, mbit)
        for size in sizes:
            found = job.run(cluster, work.train, 1 + examples // size, size).check()
            steps = [max(pair) for pair in zip(*(r["seconds"] for r in found.results))]
            rows.append({"batch_size": size, "exchanges": examples // size,
                         "seconds": sum(steps[1:])})
    return rows


def exchange_seconds(found):
    """Return an exchange's seconds, in an `Outcome`: the median, without the first."""
    found.check()
    return median(map(max, list(zip(*found.results))[1:]))


#: What a node is told of its address: its name, `node_host` and `env` of `job.run`.
TOLD = [
    ("nothing", False, {}),
    ("DMLC_INTERFACE=eth1", False, {"DMLC_INTERFACE": "eth1"}),
    ("DMLC_INTERFACE=eth1 and DMLC_NODE_HOST", True, {"DMLC_INTERFACE": "eth1"}),
]


def interfaces(told=TOLD, size=500_000):
    """Return which interface the bytes take: set by one variable, the other, none."""
    with job.hosts(3, second_interface=True) as cluster:
        return [_interface(cluster, size, *how) for how in told]


def _interface(cluster, size, name, node_host, env):
    found = job.run(cluster, work.exchange, [size], 2, env=env, node_host=node_host)
    return {"told": name, "size": size, "exchanges": 2, "moved": found.moved}


def live():
    """Run one trial each: the second interface, losses, and a slow link."""
    rows, eth1 = {}, {"DMLC_INTERFACE": "eth1"}
    with job.hosts(3, second_interface=True) as cluster:
        good = job.run(cluster, work.train, 4, node_host=False, env=eth1)
        rows["no loss"] = {**row_of(good), "moved": good.moved}
        job.lose(cluster, 0.05)
        rows["5% lost"] = row_of(job.run(cluster, work.train, 4))
        job.lose(cluster, 0)
        rows["100 Mbit/s"] = _exchange(cluster, 100)
    return rows


def deaf_server(after=9):
    """Run two jobs whose server is deaf in the second in which both workers push.

    `after`: seconds from now until then, about; the jobs start meanwhile. One resends,
    the other does not. Returns a dict for each, `without` and `with`: the `cause` of
    its end, what each worker `got`, after how many `seconds`, and what was `said` of
    it. They are repeated, with more time and a longer time-out, when they came too late
    for that second, or when ps-lite aborted the job that resends.
    """
    second, percent = deaf.one_second(deaf.node_id("server"), after)
    with ThreadPoolExecutor() as pool:
        jobs = [*pool.map(lambda timeout: _outage(timeout, second, percent),
                          (None, 300 * after // 9))]
    met = all("Drop message" in job.output("server") for job in jobs)
    dropped = met and jobs[0].results is None  # a push, and no other message
    if after < 200 and not (dropped and jobs[1].results):
        return deaf_server(2 * after)
    return dict(zip(("without", "with"), map(_heard, jobs)))


def _outage(timeout, second, percent):
    env = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": timeout} if timeout else {}
    return launch.call_job(work.at, second, 3.0, env=env, check=False,
                           env_server={"PS_DROP_MSG": percent},
                           deadline=second - time.time() + (60 if timeout else 3))


def _heard(ran):
    words = re.compile("Drop message|Timeout to get|Duplicated")
    lines = [line for node in ran.logs for line in ran.output(*node.split("-"))
             .splitlines() if words.search(line)]
    results = ran.results or []
    return {"cause": ran.cause, "said": sorted(lines), "returncode": ran.returncode,
            "got": [r["got"] for r in results],
            "seconds": [r["seconds"] for r in results]}


def slow_link():
    """Measure the slow link of `live` alone, once more."""
    with job.hosts(3) as cluster:
        return _exchange(cluster, 100)


def _exchange(cluster, mbit):
    """Return the seconds to push and pull 4 MB on links of `mbit` Mbit/s."""
    job.limit(cluster, mbit)
    sizes = [250_000] * 4
    found = job.run(cluster, work.exchange, sizes, 3)
    return {"measured": exchange_seconds(found),
            "predicted": wire.predicted(sizes, mbit)}


# What `stored` keeps. Each takes less than two minutes.


def loss_plain():
    """Lose packets, and let TCP alone repair it."""
    return loss()


def loss_plain_10():
    """Return the same, with ten of a hundred lost."""
    return loss(losses=[0.10])


def loss_resend():
    """Lose packets, with `PS_RESEND` on top of TCP."""
    return loss(DEFAULT)


def loss_resend_10():
    """Return the same, with ten of a hundred lost."""
    return loss(DEFAULT, losses=[0.10])


def loss_patient():
    """Lose packets, with `PS_RESEND` and a time-out longer than any message."""
    return loss(PATIENT, losses=[0.05, 0.10])


def loss_why():
    """Lose five in a hundred packets: other algorithms of TCP, and a shorter timer."""
    kinds = [("cubic", ()), ("cubic", ("rto_min", "10ms")), ("bbr", ())]
    return [{"algorithm": name, "options": " ".join(options),
             **loss(None, [0.05], 6, name, options)[0]}
            for name, options in kinds]


def impatient():
    """Send 4 MB in one message over 100 Mbit/s; time-out short, nothing lost."""
    rows = []
    with job.hosts(3) as cluster:
        job.limit(cluster, 100)
        for timeout in (30, 200, 1000):
            env = {"PS_RESEND": 1, "PS_RESEND_TIMEOUT": timeout}
            found = job.run(cluster, work.exchange, [1_000_000], 3, env=env,
                            deadline=150)
            rows.append({"timeout": timeout, "finished": found.results is not None,
                         "said": found.said(), "aborted": found.aborted(),
                         "moved": found.moved["h1"]["eth0"]})
    return rows


def slow_100():
    """Send 4 MB for each of two workers over 100 Mbit/s."""
    return exchanges(100, [250_000] * 4, 4, ONE_SERVER)


def slow_100_two():
    """Return the same with two servers."""
    return exchanges(100, [250_000] * 4, 4, TWO_SERVERS)


def slow_10():
    """Send 1 MB for each of two workers over 10 Mbit/s."""
    return exchanges(10, [62_500] * 4, 3, ONE_SERVER)


def slow_10_two():
    """Return the same with two servers."""
    return exchanges(10, [62_500] * 4, 3, TWO_SERVERS)


def batches_10():
    """Train on the same examples in larger minibatches, over 10 Mbit/s."""
    return batches(10)
