"""Rings of threads are made as in the tests of rings."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "kvstore"))
