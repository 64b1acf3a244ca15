"""Judges and counted messages where there is no NumPy and no MXNet, as in a page."""

import subprocess
import sys

WITHOUT = """
import sys
for missing in ("numpy", "mxnet", "IPython", "resource", "scipy"):
    sys.modules[missing] = None
from d2l_ext.data_parallel import costs, traffic
from exercisekit import check
assert costs.expected("ring", 8, 32).steps == 14
check("out_of_step", {number}, {answer})
"""


def said(number, answer):
    code = WITHOUT.format(number=number, answer=answer)
    ran = subprocess.run([sys.executable, "-c", code], check=False,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_exercises_are_judged_and_messages_counted_without_numpy_and_mxnet():
    from exercisekit.kvstore import out_of_step

    task = min(n for n, q in out_of_step.QUESTIONS.items() if hasattr(q, "judge"))
    name = out_of_step.QUESTIONS[task].right.__name__
    right = f"__import__('exercisekit.kvstore.out_of_step', fromlist='*').{name}"
    assert said(task, right).startswith(f"Exercise {task}: right.")
    assert f"Exercise {task}: not yet." in said(task, "lambda *given: None")
