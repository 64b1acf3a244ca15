"""The launcher `slurm`: one `srun` starts the servers and workers.

`srun` waits in the queue and stays while the job runs; inside an allocation (`salloc`,
`sbatch`) it makes a step of it. `--submit-args` is for its other flags: `-p gpu`,
`-N 3`, `--mem-per-cpu=4G`. Tasks are numbered over the nodes in turn, servers first.
The scheduler of the job runs beside the launcher, so the nodes must reach this
computer, at the address of its name or of `--interface`.

Tested with Slurm 22.05 on two nodes.
"""

from . import submission, submitted


def check(plan):
    """Raise `ValueError` when it can't be done: no srun, flags of ssh's."""
    submission.need("srun", "Slurm (Debian: slurm-client)")
    submission.refuse(plan, "slurm", *submission.FOR_SSH)


root = submission.root


def words(plan, job):
    """What is run: an agent in each of so many tasks."""
    return ["srun", f"--ntasks={submission.copies(plan)}", "--distribution=cyclic",
            f"--job-name={submission.name(job)}", "--mpi=none", "--input=none",
            "--export=ALL", "--label", "--wait=0", "--kill-on-bad-exit=0",
            *plan.where.submit_args, *submission.agent(plan, "SLURM_PROCID")]


class Crew(submitted.Crew):
    """Agents that `srun` starts, which stays while they do."""

    tool, queue, words = "srun", "squeue", staticmethod(words)

    @staticmethod
    def cancel(plan, job):
        return ["scancel", f"--name={submission.name(job)}"]


def describe(plan):
    """What would be submitted: a list of lines."""
    return submission.describe(plan, words(plan, "JOB"))
