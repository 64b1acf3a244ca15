"""Ends an application of YARN by its name: `yarn_kill.py NAME`.

`yarn application -kill` wants an id, which only the client has been told, and that may
have been killed. Standard library alone.
"""

import subprocess
import sys


def main(name):
    """Kill all applications of this name that have not ended."""
    done = subprocess.run(["yarn", "application", "-list"], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip
    rows = [[cell.strip() for cell in line.split("\t")] for line in
            done.stdout.splitlines()]  # fmt: skip
    found = [row[0] for row in rows if row[1:2] == [name]]
    for application in found:
        subprocess.run(["yarn", "application", "-kill", application], check=False,
                       stdin=subprocess.DEVNULL)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
