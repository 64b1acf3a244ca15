"""What became of a job, and what its nodes said."""

import re
from dataclasses import dataclass, field

#: What ps-lite's log says when a message is dropped, sent again, or came twice.
SAID = {
    "dropped": "Drop message",
    "sent again": "Timeout to get the ACK message",
    "came twice": "Duplicated message",
}
#: What the scheduler says when the workers have met for the first time.
MET = "Barrier count for 4 : "


@dataclass
class Outcome:
    """What became of a job.

    `results`: what each worker returned, in the order of `kv.rank`; None unless all
    did. `codes`: exit code of each node, None when it was still running and was
    killed. `seconds`: until the last result, or until it was given up. `logs`: the
    text of each node. `moved`: bytes sent and received by each host on each interface,
    as in `moved["h2"]["eth0"]`. `tcp`: counters of all hosts together, see `counters`.
    """

    results: list = None
    codes: dict = field(default_factory=dict)
    seconds: float = 0.0
    logs: dict = field(default_factory=dict)
    moved: dict = field(default_factory=dict)
    tcp: dict = field(default_factory=dict)

    def check(self):
        """Return this outcome, or raise `RuntimeError` when there are no results."""
        if self.results is None:
            ends = "\n".join(f"{n}: {t[-300:]}" for n, t in self.logs.items() if t)
            raise RuntimeError(f"no results after {self.seconds:.0f} s, exit codes "
                               f"{self.codes}\n{ends}")  # fmt: skip
        return self

    def began(self):
        """Whether the workers met, and work began."""
        return MET in self.logs["scheduler-0"]

    def said(self):
        """How many messages ps-lite dropped, sent again, and received twice."""
        text = "\n".join(self.logs.values())
        return {what: text.count(words) for what, words in SAID.items()}

    def aborted(self):
        """The nodes that gave up after ten retries."""
        words = re.compile(r"Check failed: \S*num_retry")
        return [name for name, text in self.logs.items() if words.search(text)]
