"""The claims ledger as data: reads `claims.yml`.

Used by the Sphinx extension `claims_ledger` and by the tests, so it needs
nothing but PyYAML.
"""

from collections import namedtuple

import yaml

#: What a test of the book can say about a claim, in the order of the counts.
VERDICTS = ("confirmed", "qualified", "refuted", "open")
#: A shape for each verdict: shape and word carry the meaning, colour only helps.
MARKERS = {"confirmed": "✔", "qualified": "◐", "refuted": "✘", "open": "○"}
#: Short labels of the flags, as the ledger prints them.
FLAGS = {"speed": "speed", "gpu": "GPU"}

#: One statement. `source` and `flags` are lists; `finding` and `chapter` may be ''.
Claim = namedtuple("Claim", "id statement source flags verdict finding chapter")
#: One document. `what` says what it is.
Source = namedtuple("Source", "name title what url")
#: `sources`: dict from short name to `Source`. `claims`: list of `Claim`, in order.
Ledger = namedtuple("Ledger", "sources claims")


def load(path):
    """Read the ledger from the YAML file at `path`.

    Raises `ValueError`, with the claim's id and the key, when a claim lacks
    `id`, `statement`, `source` or `verdict`, or has a key that is not known; and with
    the line, when a key occurs twice in one mapping, of which YAML keeps only the last.
    """
    with open(path, encoding="utf-8") as stream:
        data = yaml.load(stream, _OnceLoader)
    sources = {name: Source(name, **fields) for name, fields in data["sources"].items()}
    return Ledger(sources, [_claim(fields) for fields in data["claims"]])


class _OnceLoader(yaml.SafeLoader):
    """YAML's safe loader, for which a key that occurs twice is an error."""

    def construct_mapping(self, node, deep=False):
        found = super().construct_mapping(node, deep)
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ValueError(f"claims.yml, line {line}: {key.value} occurs twice")
            seen.add(key.value)
        return found


def _claim(fields):
    optional = {"flags": [], "finding": "", "chapter": ""}
    name = fields.get("id", "without id")
    missing = set(Claim._fields) - set(optional) - set(fields)
    unknown = set(fields) - set(Claim._fields)
    if missing or unknown:
        raise ValueError(
            f"claims.yml, claim {name}: missing {sorted(missing)}, "
            f"unknown {sorted(unknown)}; known keys are {list(Claim._fields)}"
        )
    return Claim(**{**optional, **fields})
