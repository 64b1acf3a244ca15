"""What nbval is told to overlook, as it reads it."""

import re

from nbval.plugin import get_sanitize_patterns
from notebook_cells import ROOT

TEXT = (ROOT / "tests/book/nbval_sanitize.cfg").read_text(encoding="utf-8")
PATTERNS = get_sanitize_patterns(TEXT)


def sanitize(output):
    """As nbval does it: all patterns, in the order of the file."""
    for regex, replacement in PATTERNS:
        output = re.sub(regex, replacement, output)
    return output
