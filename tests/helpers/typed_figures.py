"""Times and speed-ups in running text: figures that a run should have given."""

import re

from rules_learning import HOW_LONG

NUMBER = r"\d[\d.,]*(?:\s*[–-]\s*\d[\d.,]*)?\s*"
WORD = r"(?:half\s+an?|two|three|four|five|six|ten|twenty|thirty|a\s+hundred)\s+"
UNIT = r"(?:(?:n|µ|u|m)?s|(?:milli|micro)?seconds?|min|minutes?|hours?|days?|weeks?)"
TYPED = re.compile(
    rf"(?<![\w.-])(?:{NUMBER}|{WORD}){UNIT}\b"
    r"|\d[\d.,]*\s*(?:×|times)\s*(?:as\s+(?:fast|quick|slow|long)|faster|slower|quicker)"
    r"|(?:\btwice|\bhalf)\s+as\s+(?:fast|quick|slow|long)\b"
    r"|\bspeed-?ups?\s+(?:of|is|was)\s+(?:about\s+)?\d",
    re.IGNORECASE,
)
#: What is no running text: blocks, roles (which take figures from results), code,
#: formulas; and how long a chapter runs, which tests/book/test_durations.py compares.
NOT_PROSE = [
    re.compile(r"(?ms)^(```|:::+).*?^\1\s*$"),
    re.compile(r"\{[\w-]+\}`[^`]*`"),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\$[^$]*\$"),
    HOW_LONG,
]
SET = "a setting, which a cell or a program makes"
GIVEN = "given in an example or an exercise"
COMPUTED = "computed by a cell, without a clock"
FACT = "a property of another program"
#: Pages, the words around a figure, and why a person may have typed it.
ALLOWED = {
    "chapters/data_parallel/allreduce": {"with α = 50 µs": GIVEN},
    "chapters/clusters/bad_networks": {"never sets below 200 ms": FACT},
    "chapters/kvstore/compression": {
        "at least 1.5 times as quick": GIVEN,
        "a plain step takes 10 ms": GIVEN,
        "a compressed one 14 ms": GIVEN,
        "Then set 10 ms": GIVEN,
        "1.5 times 14 ms": GIVEN,
    },
    "chapters/clusters/launching": {"no sign of life for ten seconds": SET},
    "chapters/pipeline/lstm_pipeline": {"a speed-up of 3.5 at best": GIVEN},
    "chapters/pipeline/micro_batches": {"about twice as long as forward work": GIVEN},
    "chapters/clusters/recovery": {
        "with half a minute per checkpoint": GIVEN,
        "two minutes per restart": GIVEN,
        "a failure every four hours": GIVEN,
        "is it better to save every 2 minutes": GIVEN,
        "with a time-out of three seconds": SET,
        "after ten seconds |": SET,
        "restarts the job | ten seconds": SET,
        "have ended this job, after 30 s": SET,
        "after the time-out; after 30 s": SET,
        "at the deadline; after 30 s": SET,
        "A checkpoint takes 20 s": GIVEN,
        "fails once in 40 days": GIVEN,
        "are twice as slow to restart": GIVEN,
    },
    "chapters/scale/fitting": {
        "a latency of 20 µs": GIVEN,
        "took 1, 3 and 5 seconds": GIVEN,
    },
    "chapters/scale/simulating": {
        "steps that take four milliseconds": SET,
        "takes 1 second for each": GIVEN,
        "after 0, 0.5 and 4 seconds": GIVEN,
        "one stage that is twice as slow": GIVEN,
    },
    "chapters/kvstore/in_step": {
        "after two seconds of waiting": SET,
        "its death for two seconds": SET,
    },
    "chapters/kvstore/out_of_step": {
        "8 ms on workers 0 and 1": SET,
        "40 ms on worker 2": SET,
        "lasts at least 40 ms": SET,
        "each worker's step lasts 1 second": GIVEN,
        "takes 1 second only if": GIVEN,
    },
    "reference/cluster_setup": {
        "heard of the launcher for ten seconds": SET,
        "After ten seconds the launcher ends": SET,
        "after 30 s the job ends with code": SET,
        "on other hosts end after ten seconds": SET,
    },
    "reference/gpu_box": {"did not load within 120 s": SET},
    "reference/notation": {"2 is twice as fast": "a definition"},
}


def prose(text):
    """The running text of Markdown; what is cut out leaves a mark."""
    for pattern in NOT_PROSE:
        text = pattern.sub("…", text)
    return text


def typed(text, allowed=()):
    """The lines of Markdown that hold a typed figure, and the figure.

    A figure inside of one of the `allowed` pieces of text is left out.
    """
    found = []
    for line in prose(text).splitlines():
        spans = [
            match.span()
            for piece in allowed
            for match in re.finditer(re.escape(piece), line, re.IGNORECASE)
        ]
        found += [
            f"{match.group()!r} in {line.strip()!r}"
            for match in TYPED.finditer(line)
            if not any(a <= match.start() and match.end() <= b for a, b in spans)
        ]
    return found
