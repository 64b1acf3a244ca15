"""Answers to this part's exercises, once more from the numbers in their texts."""

import re

import pytest
from notebook_cells import chapters, read

from d2l_ext.pipeline.partition import Layer, predict
from d2l_ext.pipeline.schedule import bubble_formula
from d2l_ext.pipeline.wavefront import bound
from exercisekit import questions
from exercisekit.question import says

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"]
NUMBER = rf"(\d+(?:\.\d+)?|{'|'.join(WORDS)})"


def text(name, exercise):
    """What an exercise says, without its hint."""
    cells = read(chapters()[f"chapters/pipeline/{name}"]).cells
    everything = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    asked = rf"### Exercise {exercise}\n(.*?)<details>"
    found = re.search(asked, everything, re.DOTALL)
    return found[1].lower()


def numbers(name, exercise, *patterns):
    """The numbers, one before each of `patterns`, in figures or in words."""
    said = text(name, exercise)
    found = [re.search(rf"\b{NUMBER}\b{pattern}", said) for pattern in patterns]
    assert all(found), f"{name}, exercise {exercise}, does not say all of {patterns}"
    return [WORDS.index(f[1]) if f[1] in WORDS else float(f[1]) for f in found]


def third_device():
    layers, on_each, T = numbers(
        "where_to_cut", 1, " equal layers", " on each", " time steps"
    )
    assert "third device" in text("where_to_cut", 1) and layers == 2 * on_each
    equal = [Layer(str(i), forward=T, backward=2 * T) for i in range(layers)]
    two, three = (
        predict([i * k // layers for i in range(layers)], equal, int(T)) for k in (2, 3)
    )
    return three / two


def steps_for_a_speed_up():
    k, wanted = numbers("lstm_pipeline", 1, " devices", r"\?")
    return next(T for T in range(1, 99) if bound(k, T) >= wanted)


def micro_batches_for_a_tenth():
    (p,) = numbers("micro_batches", 1, " stages")
    assert "bubble of at most a tenth" in text("micro_batches", 1)
    return next(m for m in range(1, 99) if bubble_formula(p, m) <= 0.1)


def means_added():
    return numbers("micro_batches", 5, " micro-batches of equal size")[0]


@pytest.mark.parametrize("key, answer", [
    (("where_to_cut", 1), third_device),
    (("lstm_pipeline", 1), steps_for_a_speed_up),
    (("micro_batches", 1), micro_batches_for_a_tenth),
    (("micro_batches", 5), means_added),
])
def test_the_numbers_of_the_text_give_the_answer_that_is_right(key, answer):
    assert says(questions()[key], answer()) == "right."
