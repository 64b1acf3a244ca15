"""The launcher `local`: every node is a process on this machine.

Its processes listen on 127.0.0.1, and see the launcher's files.
"""

import os
import shutil

from . import crew
from .environment import LOOPBACK
from .job import NO_COMMAND, Failed, name_of


class Local(crew.Crew):
    """No agents: all processes are the watchdog's."""

    @classmethod
    def check(cls, plan):
        for name in ("hosts", "interface", "sync_dst_dir", "ssh_config", "submit_args"):
            if getattr(plan.settings, name):
                raise ValueError(f"{name}: the launcher local knows this machine "
                                 "alone, name another one")

    @classmethod
    def describe(cls, plan):
        return [f"{name_of(node)}: {plan.shown(node[0])}" for node in plan.nodes]

    @staticmethod
    def scheduler_address(plan):
        return LOOPBACK

    def gathered(self):
        """At once, if there is such a command."""
        path = self.plan.env["worker"].get("PATH", os.environ.get("PATH"))
        if not shutil.which(self.plan.command[0], path=path):
            if os.path.exists(self.plan.command[0]) and "/" in self.plan.command[0]:
                what = f"{self.plan.command[0]!r} cannot be run: it is no program, or "
                raise Failed(what + "not executable (chmod +x)", 126)
            raise Failed(f"no such command: {self.plan.command[0]!r}", NO_COMMAND)
        return True
