"""The three kinds of machine that the book runs on, and what each chooses.

Numbers only: `devices` makes contexts of them. Every choice between GPUs and CPU
contexts in the book is made by `choose`.
"""

from dataclasses import dataclass

#: The names of the profiles, by the number of GPUs: none, one, two or more.
PROFILES = ("no GPU", "one GPU", "two or more GPUs")
#: Forces the choice: one of `FORCED`; unset for "GPUs when there are enough".
VARIABLE = "D2L_EXT_DEVICES"
#: `cpu` and `one-gpu`: as if the machine had so many; `gpu`: GPUs or an error.
FORCED = ("cpu", "one-gpu", "gpu")


@dataclass(frozen=True)
class Choice:
    """`kind` is `gpu` or `cpu`, of all devices; `profile` is one of `PROFILES`."""

    kind: str
    profile: str


def choose(found, needed, forced=""):
    """Return the `Choice` where `needed` devices are wanted and `found` GPUs are there.

    GPUs if there are enough, else CPU contexts; never a mixture, so that the devices
    of a chapter are alike. `forced`: one of `FORCED`, or empty.

    Raises `ValueError` for another word, and `RuntimeError` when GPUs are forced
    that are not there.
    """
    if forced not in ("", *FORCED):
        wanted = ", ".join(FORCED)
        raise ValueError(f"{VARIABLE}={forced!r}: write {wanted}, or unset it")
    least = {"gpu": needed, "one-gpu": 1}.get(forced, 0)
    if found < least:
        gpus = "GPU is" if least == 1 else "GPUs are"
        raise RuntimeError(
            f"{VARIABLE}={forced}, but {least} {gpus} needed and MXNet sees {found}. "
            f"Unset {VARIABLE} to use CPU contexts."
        )
    counted = min(found, {"cpu": 0, "one-gpu": 1}.get(forced, found))
    kind = "gpu" if needed <= counted else "cpu"
    return Choice(kind, PROFILES[min(counted, 2)])
