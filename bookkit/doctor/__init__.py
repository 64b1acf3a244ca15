"""Says whether the book can run on this machine, on what, and why not on more.

    python -m bookkit.doctor           every finding, the verdict, the next command
    python -m bookkit.doctor --json    the same for a program

It needs neither MXNet nor anything else that has to be installed. `driver` asks NVML,
`hardware`, `software` and `cluster` find, `report` puts together and judges, `probe`
asks MXNet's library in a process of its own, and `list` names the GPUs for the set-up.

Described on the page *Setting up a GPU box*.
"""

from dataclasses import dataclass

OK, NOTE, BAD = "ok", "note", "bad"


@dataclass(frozen=True)
class Finding:
    """`topic: text`, how good it is, and what the reader can do about it.

    `state`: `ok`; `note`, when the book runs but something is missing or slower;
    `bad`, when it cannot run. `advice`: empty, or a command or a half sentence.
    """

    topic: str
    text: str
    state: str = OK
    advice: str = ""
