"""The launcher `local`: every node is a process on this machine.

Its processes listen on 127.0.0.1, and see the launcher's files.
"""

from . import crew


class Local(crew.Crew):
    """No agents: all processes are the watchdog's."""

    @classmethod
    def check(cls, plan):
        for name in ("hosts", "interface", "sync_dst_dir", "ssh_config", "submit_args"):
            if getattr(plan.settings, name):
                raise ValueError(f"{name}: the launcher local knows this machine "
                                 "alone, name another one")  # fmt: skip
