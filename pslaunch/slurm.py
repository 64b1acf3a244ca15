"""The launcher `slurm`: one `srun` starts the servers and workers.

`srun` waits in the queue and stays while the job runs; inside an allocation (`salloc`,
`sbatch`) it makes a step of it. Other flags: `-p gpu`, `-N 3`, `--mem-per-cpu=4G`.
Tasks are numbered over the nodes in turn, servers first.

Tested with Slurm 22.05 on two nodes.
"""

from . import submitted


class Crew(submitted.Crew):
    """Agents that `srun` starts, which stays while they do."""

    tool, package, queue = "srun", "Slurm (Debian: slurm-client)", "squeue"

    @staticmethod
    def words(plan, job):
        """An agent in each of so many tasks."""
        return ["srun", f"--ntasks={submitted.copies(plan)}", "--distribution=cyclic",
                f"--job-name={submitted.name(job)}", "--mpi=none", "--input=none",
                "--export=ALL", "--label", "--wait=0", "--kill-on-bad-exit=0",
                *plan.settings.submit_args, *submitted.agent(plan, "SLURM_PROCID")]

    @staticmethod
    def cancel(plan, job):
        return ["scancel", f"--name={submitted.name(job)}"]
