"""A picture of a job that was started again: the steps of each worker over time."""

import matplotlib.pyplot as plt

from d2l_ext.palette import ALARM as LOST
from d2l_ext.palette import DEVICE_COLOURS

#: Neither is a worker's colour, because each worker has a panel of its own. They differ
#: in shape as well.
NEW, AGAIN = "0.3", DEVICE_COLOURS[4]


def draw(story, num_workers=2):
    """Return a panel per worker: steps over seconds, losses, restarts, repeated steps.

    `story`: a `story.Story`. Returns the figure. Developed in the chapter *Faults and
    recovery*.
    """
    figure, panels = plt.subplots(num_workers, squeeze=False, sharex=True, sharey=True,
                                  figsize=(7, 1.9 * num_workers))
    panels = panels[:, 0]
    for rank, panel in enumerate(panels):
        _steps(panel, story, rank)
        for at, name in story.losses:
            panel.axvline(at, color=LOST, linewidth=1)
            if rank == 0:
                panel.annotate(f"{name} killed", (at, 1.04), color=LOST, fontsize=8,
                               xycoords=("data", "axes fraction"), ha="center")
        for number, at in enumerate(story.restarts):
            panel.axvline(at, color="0.5", linewidth=1, linestyle=":",
                          label="started again" if not number else None)
        panel.set_ylabel(f"worker {rank}\nstep")
    panels[-1].set_xlabel("seconds since the job began")
    # Outside: wherever it stood inside, some job has its steps there.
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="upper center",
                  bbox_to_anchor=(0.5, 0), ncol=3)
    return figure


def _steps(panel, story, rank):
    """Draw new steps as grey dots, and repeated ones as amber rings."""
    best, new, again = 0, [], []
    for at, _, who, step in story.steps:
        if who == rank:
            (new if step > best else again).append((at, step))
            best = max(best, step)
    for points, colour, marker, label in ((new, NEW, ".", "a new step"),
                                          (again, AGAIN, "o", "a step done again")):
        panel.plot(*zip(*points or [((), ())]), marker, color=colour, label=label,
                   markersize=4, fillstyle="none" if marker == "o" else "full")
