"""When a process that aborts or waits has nothing left to do.

With `PS_RESEND=1` a node begins to acknowledge only some time after it can receive.
The scheduler may so count a node twice, open the last barrier of a job too early, once
even at the job's beginning, and leave. Those who then tell it something try ten times,
and abort; those who wait for its answer wait for ever. So neither an abort nor a
scheduler that has left says that the work was done: what a process printed has to.
"""

import re

#: The process has stopped its node; its resending thread has not noticed.
STOPPED = ("Check failed: ready_: call Start() first", "terminate called recursively")
#: Nobody has acknowledged a message: it was sent, and sent again ten times.
GAVE_UP = "num_retry < max_num_retry_"
#: The message was for the barrier of all nodes. A node's message number 1 is that at
#: which the store is opened, a later one that at which it is closed.
_BARRIER = re.compile(r"Resend \(retry=10\) .*timestamp=(\d+), .*barrier_group=7\b")


def had_closed(role, log, is_done=False):
    """Whether a process that aborted had closed its store, by all that it printed.

    A server or scheduler that gave up is believed: it leaves only when it is told to,
    and workers that still need it fail, too. A worker is not, unless the message in
    question was its last, or its work is known to be done (`is_done`).
    """
    if any(text in log for text in STOPPED):
        return True
    believed = role != "worker" or is_done or _tried_to_close(log)
    return GAVE_UP in log and believed


def _tried_to_close(log):
    found = _BARRIER.search(log)
    return bool(found) and int(found[1]) > 1
