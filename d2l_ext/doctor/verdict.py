"""The sentence at the end: can the book run here, on what, and what comes next?"""

from dataclasses import dataclass

from .finding import BAD
from .gpus import unusable, usable


@dataclass(frozen=True)
class Verdict:
    """`runs`: whether the book can run. `next`: the command to type now."""

    runs: bool
    text: str
    next: str


def decide(findings, answers, probed, count=2):
    """Return the `Verdict` on these `findings`.

    `answers`: NVML's. `probed`: what MXNet's library said of itself. `count`: how
    many cores there are.
    """
    bad = [finding for finding in findings if finding.state == BAD]
    if bad:
        first = bad[0]
        text = f"The book cannot run yet: {first.topic}: {first.text}."
        return Verdict(False, text, first.advice)
    seen = probed["gpus"]
    if seen:
        return Verdict(True, f"The book runs on {_number(seen)}.", "make book")
    contexts = "The book runs on CPU contexts"
    fit, unfit = usable(answers), unusable(answers)
    if fit and "CUDA" not in probed["features"]:
        text = f"{contexts}, because MXNet was installed for the CPU; here is a usable "
        return Verdict(True, f"{text}{fit[0].name}.", "make book DEVICE=gpu")
    if fit:
        text = f"{contexts}: MXNet sees none of the GPUs that the driver lists."
        return Verdict(True, text, "make book")
    if unfit:
        return Verdict(True, f"{contexts}, not on {unfit[0]}.", "make book")
    cores = "one core" if count == 1 else f"{count} cores"
    text = f"{contexts} ({cores}); there is no GPU that it could use."
    return Verdict(True, text, "make book")


def _number(gpus):
    if gpus == 1:
        return "one GPU, and on CPU contexts where a chapter needs two devices"
    return f"{gpus} GPUs"
