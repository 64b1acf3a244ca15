"""The exercises of the book: what each asks, its answer, and what wrong ones suggest.

| file | holds |
|---|---|
| `answers` | `check`, and what is asked in a chapter, or in all |
| `question` | a question: its right answer, which may be code, and typical mistakes |
| `trial` | a child process, in which the reader's code is tried within limits |
| `solutions` | `solution`, which shows a reference solution and tries it |
| `counts` | what code uses, counted beside what is enough |
| `ranks` | stand-ins for processes, which code for them is tried with |

The questions of a chapter are in the file of its name, in the folder of its part.
"""

import d2l_ext  # noqa: F401 - before mxnet, which some judges load

from .answers import check, questions
from .solutions import solution

__all__ = ["check", "questions", "solution"]
