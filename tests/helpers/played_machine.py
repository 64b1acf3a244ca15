"""A machine that is played: a folder of small scripts is its whole PATH."""

import shutil
import subprocess
from pathlib import Path

#: git, with a name for its commits.
GIT = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org"]
TOOLS = Path(__file__).resolve().parents[2] / "tools"
#: What the scripts in tools use themselves, and nothing more.
PROGRAMS = ("awk", "cat", "cksum", "env", "mkdir", "mv", "pwd", "rm", "sed", "sh")
PROGRAMS += ("bash", "dirname", "tail", "touch", "tr", "uname")


class Machine:
    """A machine with no Python and no GPU; `add` puts programs on its PATH."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        for name in PROGRAMS:
            (path / name).symlink_to(shutil.which(name))

    def add(self, name, script):
        file = self.path / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def add_python(self, name, version, module="venv", kind="Linux-x86_64"):
        """A Python that answers the probe of find_python.sh as a real one would."""
        self.add(name, f"echo '{version} {module} {kind} /real/{name}'")

    def add_gpus(self, *lines):
        self.add("nvidia-smi", "\n".join(f"echo '{line}'" for line in lines))

    def run(self, script, **settings):
        return subprocess.run(
            [shutil.which("sh"), "-c", f'exec "{script}"'],
            check=False,
            env={"PATH": str(self.path), **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def find_python(self, **settings):
        return self.run(TOOLS / "find_python.sh", **settings)

    def find_device(self, **settings):
        return self.run(TOOLS / "find_device.sh", **settings)
