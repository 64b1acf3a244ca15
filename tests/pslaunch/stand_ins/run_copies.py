"""What stand-ins for clusters share: copies of a command, in a group of processes.

`run_copies.py FOLDER` reads FOLDER/copies.json, runs the copies to their ends, and
notes their codes. The job that asked for them is not their parent, nor do they have its
mark or its variables, as if they were on other hosts.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def start(folder, command, envs):
    """Begin a run in the background: a copy of `command` with each of `envs`."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = {"command": command, "envs": envs}
    (folder / "copies.json").write_text(json.dumps(spec))
    env = {n: v for n, v in os.environ.items() if n not in ("D2L_EXT_DOOR",
                                                            "D2L_EXT_JOB")}
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)], env=env, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    (folder / "group").write_text(str(process.pid))
    return process


def end(folder):
    """Kill all copies, and forget them."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.killpg(int((folder / "group").read_text()), signal.SIGKILL)


def log(folder, number):
    return folder / f"log-{number}"


def code(folder, number):
    """Of a copy that has ended; else None."""
    path = folder / f"code-{number}"
    return int(path.read_text()) if path.exists() else None


def main(folder):
    spec = json.loads((folder / "copies.json").read_text())
    copies = []
    for number, env in enumerate(spec["envs"]):
        with open(log(folder, number), "w") as file:
            copies.append(subprocess.Popen(spec["command"], env={**os.environ, **env},
                                           stdout=file, stderr=file))
    for number, copy in enumerate(copies):
        (folder / f"code-{number}").write_text(str(copy.wait()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
