"""The exercises of the book: questions, right answers, and hints for wrong ones.

| file | holds |
|---|---|
| `answers` | `check`, and the questions of a chapter or of all |
| `question` | a question: its right answer, perhaps code, and typical mistakes |
| `trial` | a child process that runs the reader's code within limits |
| `solutions` | `solution`, which shows and checks a reference solution |
| `counts` | what code uses, compared with the reference |
| `ranks` | simulated processes, on which code for real ones is tried |

A chapter's questions are in the file of its name, in the folder of its part.
"""

import d2l_ext  # noqa: F401 - before mxnet, which some judges load

from .answers import check, questions
from .solutions import solution

__all__ = ["check", "questions", "solution"]
