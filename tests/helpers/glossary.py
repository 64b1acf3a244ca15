"""The glossary as data: its terms, and which words stand for one of them."""

import re
from functools import cache

from glossary_terms import entries
from notebook_cells import ROOT


@cache
def terms():
    """Every term of glossary.md, as it is written there."""
    text = (ROOT / "reference/glossary.md").read_text(encoding="utf-8")
    return [name for names in entries(text) for name in names]


def stem(words):
    """Small letters, no mark-up, the last word in the singular."""
    words = re.sub(r"[`*$]|\(.*?\)", "", words).strip().lower().replace("-", " ")
    for plural, singular in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if words.endswith(plural) and not words.endswith(("ss", "us", "is")):
            return words[: -len(plural)] + singular
    return words


@cache
def _stems():
    return {stem(term) for term in terms()}


def defines(words):
    """Whether the glossary has an entry for `words`."""
    return stem(words) in _stems()


def is_sentence(words):
    """Whether bold text is a sentence or a setting, not a term."""
    return words.rstrip().endswith((".", "?", "!", ":")) or words.startswith("`")
