"""One thing that the doctor found."""

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
