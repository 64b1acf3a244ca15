"""Right answers to exercises of the part on clusters, written differently."""

import os
import subprocess
import threading
import time
from collections import Counter, deque
from itertools import cycle, groupby

import numpy


def sharded_checkpoints_2_a(size, m, rank, n):
    """Element by element: in which shard, and at which place there."""
    begins = [shard * size // m for shard in range(m + 1)]
    own = range(rank * size // n, (rank + 1) * size // n)
    found = []
    for shard, part in groupby(
        own, lambda e: max(s for s in range(m) if begins[s] <= e < begins[s + 1])
    ):
        part = [e - begins[shard] for e in part]
        found.append([shard, part[0], part[-1] + 1])
    return found


def sharded_checkpoints_2_b(size, m, rank, n):
    """All cuts of both divisions, in order: between two of them is a piece."""
    begin, end = rank * size // n, (rank + 1) * size // n
    shards = [shard * size // m for shard in range(m + 1)]
    cuts = sorted({begin, end, *(cut for cut in shards if begin < cut < end)})
    pieces = []
    for a, b in zip(cuts, cuts[1:]):
        shard = int(numpy.searchsorted(shards, a, side="right")) - 1
        pieces.append((shard, a - shards[shard], b - shards[shard]))
    return tuple(pieces)


class sharded_checkpoints_3_a:
    """A thread for each save, and a place for its error."""

    def __init__(self, write):
        self.write, self.thread, self.error = write, None, None

    def save(self, state):
        self.wait()
        self.thread = threading.Thread(target=self._run, args=[numpy.array(state)])
        self.thread.start()

    def _run(self, state):
        try:
            self.write(state)
        except Exception as error:  # noqa: BLE001
            self.error = error

    def wait(self):
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        error, self.error = self.error, None
        if error is not None:
            raise error


def launching_2_a(hosts, roles):
    used, names, slots = Counter(), cycle([name for name, _ in hosts]), dict(hosts)
    if len(roles) > sum(slots.values()):
        raise ValueError("no room")
    placed = []
    for role in roles:
        name = next(name for name in names if used[name] < slots[name])
        used[name] += 1
        placed.append((role, name))
    return placed


def launching_2_b(hosts, roles):
    around, placed = deque(hosts), []
    for role in roles:
        while around and not around[0][1]:
            around.popleft()
        if not around:
            raise ValueError(f"no slot is left for {role}")
        name, slots = around.popleft()
        placed.append([role, name])
        around.append((name, slots - 1))
    return placed


def launching_3_a(commands, deadline):
    """Waits for any of them in a thread each."""
    running = [subprocess.Popen(words) for words in commands]
    ended, changed = [], threading.Condition()

    def watch(process):
        code = process.wait()
        with changed:
            ended.append(code)
            changed.notify_all()

    watchers = [threading.Thread(target=watch, args=[process]) for process in running]
    for watcher in watchers:
        watcher.start()
    with changed:
        changed.wait_for(lambda: any(ended) or len(ended) == len(running), deadline)
        code = next(filter(None, ended), 0 if len(ended) == len(running) else 124)
    for process, watcher in zip(running, watchers):
        process.kill()
        watcher.join()
    return code


def launching_3_b(commands, deadline):
    """By the numbers of the processes alone."""
    left = {os.spawnvp(os.P_NOWAIT, words[0], words) for words in commands}
    begin, code = time.monotonic(), 0
    while left and not code:
        for pid in sorted(left):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                left.discard(pid)
                code = code or os.WEXITSTATUS(status)
        if left and time.monotonic() - begin > deadline:
            code = code or 124
        time.sleep(0.002)
    for pid in left:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return code


class bad_networks_2_a:
    """All values by worker and number; a copy takes its own place."""

    def __init__(self):
        self.values = {}

    def take(self, worker, number, value):
        self.values.setdefault(worker, {})[number] = value

    @property
    def total(self):
        return sum(sum(own.values()) for own in self.values.values())


class bad_networks_2_b:
    """For each worker the numbers below which all have come, and those above."""

    def __init__(self):
        self.total, self.next, self.early = 0, {}, {}

    def take(self, worker, number, value):
        low, early = self.next.get(worker, 0), self.early.setdefault(worker, set())
        if number < low or number in early:
            return
        self.total += value
        early.add(number)
        while low in early:
            early.discard(low)
            low += 1
        self.next[worker] = low


def bad_networks_4_a(sizes, mbit, workers, servers, ratio, pulls):
    pushed = 32 * ratio * sum(sizes) / 1e6
    pulled = 32 * pulls * sum(sizes) / 1e6
    if workers > servers:
        pushed, pulled = (bits * workers / servers for bits in (pushed, pulled))
    return (pushed + pulled) / mbit


def bad_networks_4_b(sizes, mbit, workers, servers, ratio, pulls):
    links = [[0.0] * workers, [0.0] * servers]
    for worker in range(workers):
        for server in range(servers):
            for size in sizes:
                bits = 32 * size / servers * (ratio + pulls)
                links[0][worker] += bits
                links[1][server] += bits
    return max(map(max, links)) / (mbit * 10**6)


def recovery_2_a(seen):
    steps = sorted(map(int, seen[0]), reverse=True)
    for step in steps:
        if len({own.get(str(step)) for own in seen}) == 1:
            return step
    return 0


def recovery_2_b(seen):
    count = Counter(pair for own in seen for pair in own.items())
    return max([0] + [int(step) for (step, _), n in count.items() if n == len(seen)])


def recovery_3_a(folder, step, pieces):
    """All pieces first, then the file: a full disk raises before anything is there."""
    data = b"".join(pieces)
    (folder / f"{step}.tmp").write_bytes(data)
    os.replace(folder / f"{step}.tmp", folder / f"{step}.ckpt")
    steps = sorted((int(path.stem) for path in folder.glob("*.ckpt")), reverse=True)
    for old in steps[2:]:
        (folder / f"{old}.ckpt").unlink()


def recovery_3_b(folder, step, pieces):
    hidden = folder / "being-written"
    try:
        with open(hidden, "wb") as file:
            for piece in pieces:
                file.write(piece)
                file.flush()
    except OSError:
        os.remove(hidden)
        raise
    hidden.rename(folder / f"{step}.ckpt")
    while len(names := os.listdir(folder)) > 2:
        os.remove(folder / min(names, key=lambda name: int(name.split(".")[0])))
