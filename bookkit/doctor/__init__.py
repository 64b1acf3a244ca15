"""Says whether the book can run on this machine, and on which devices.

    python -m bookkit.doctor           every finding, the verdict, the next command
    python -m bookkit.doctor --json    the same for a program

It needs neither MXNet nor any other package. `driver` queries NVML; `hardware`,
`software` and `cluster` make findings; `report` collects and judges them; `probe`
queries MXNet's library in a process of its own; `list` names the GPUs for the set-up.

Described on the page *Setting up a GPU box*.
"""

from dataclasses import dataclass

OK, NOTE, BAD = "ok", "note", "bad"


@dataclass(frozen=True)
class Finding:
    """One finding, `topic: text`, with its state and advice.

    `state`: `ok`; `note` if the book runs, but something is missing or slow; `bad` if
    it cannot run. `advice`: empty, a command, or part of a sentence.
    """

    topic: str
    text: str
    state: str = OK
    advice: str = ""
