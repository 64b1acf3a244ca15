"""Jobs that lose something at a random moment, and what became of them."""

import random
import sys
from pathlib import Path

import numpy

import netbox as box
from d2l_ext.clusters.checkpoint import Checkpoints
from pslaunch.temporary import Folder

from .story import Hosts, run

TRAIN = [sys.executable, "-m", "d2l_ext.train", "--network", "mlp", "--batch-size",
         "32", "--kv-store", "dist_sync", "--save-every", "5", "--disp-batches",
         "1"]
FLAGS = ["-n", "2", "-s", "2", "--deadline", 600, "--max-restarts", 3]


def job(place, folder, lose=(), repair=None, epochs=12):
    """Run a small training of two workers; return its `Story`; state in `folder`."""
    own = ["--num-epochs", epochs, "--save-prefix", Path(folder) / "p"]
    return run(place, [*FLAGS, *TRAIN, *own], lose, repair)


def state(folder):
    """Return the last checkpoint's arrays: weights, momentum, counts; or None."""
    loaded = Checkpoints(Path(folder) / "p").load()
    return loaded and loaded[1]


def same(these, those):
    """Return whether two states are equal, bit by bit."""
    return bool(these and those) and these.keys() == those.keys() and all(
        numpy.array_equal(these[name], those[name]) for name in these)


def disturbed(place, folder, seconds, whole, draw):
    """Run a job that loses something within `seconds`; return its outcome, a dict.

    `whole`: the state of the job that nothing happened to. `draw`: a `random.Random`;
    it decides what is lost, when, and whether and when it is repaired.
    """
    wait, name = draw.uniform(0, 0.9 * seconds), draw.choice  # not when it is over
    back = draw.uniform(0, 20) if draw.random() < 0.5 else float("inf")
    story = job(place, folder, [(lambda s: s.seconds > wait, name)],
                lambda s: s.seconds > s.losses[0][0] + back)
    told = story.job or {}
    lost = story.losses[0][1] if story.losses else None
    late = story.restarts and story.restarts[0] - story.losses[0][0]
    found = {
        "right": told.get("returncode") == 0 and same(state(folder), whole),
        "lost": lost, "after": round(wait, 1), "restarts": told.get("restarts"),
        "noticed": round(late, 1) if late else None,
        "again": max(story.done_again().values(), default=0),
        "seconds": round(story.seconds, 1), "notes": told.get("notes"),
    }
    if not found["right"]:
        found.update(cause=told.get("cause"), said=story.said[-5:])
    return found


def trials(place, seed=0):
    """Yield the seconds of an undisturbed job, then what became of others, forever.

    Jobs that ended before anything could be lost are left out.
    """
    with Folder("d2l_ext-recovery-") as folder:
        draw = random.Random(seed)
        seconds = job(place, Path(folder, "whole")).seconds
        whole, number = state(Path(folder, "whole")), 0
        yield seconds
        while True:
            number += 1
            found = disturbed(place, Path(folder, str(number)), seconds, whole, draw)
            if found["lost"] or not found["right"]:
                yield found


def lost_hosts(count=5, seed=0):
    """Lose a host of three, `count` times, each in a job of its own; a list of dicts.

    Needs a box; about half a minute each.
    """
    with box.Cluster(hosts=3) as cluster:
        row = trials(Hosts(cluster), seed)
        next(row)
        return [next(row) for _ in range(count)]
