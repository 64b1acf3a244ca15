"""The launcher `local`: every node is a process on this machine.

Its processes listen on 127.0.0.1, and see the launcher's files.
"""


def check(plan):
    """Raise `ValueError` when `plan` names hosts, or how to reach them."""
    for name in ("hosts", "interface", "sync_dst_dir", "ssh_config", "submit_args"):
        if getattr(plan.where, name):
            raise ValueError(f"{name}: the launcher local knows this machine alone, "
                             "name another one")  # fmt: skip
