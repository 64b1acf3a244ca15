"""Exercises of the chapter *Say where it lies*."""

from ..question import Question, Task, compared


def output(spec, cut):
    """Return the layout of a product's output, as text."""
    out = spec.partition("->")[2]
    owed = sorted(axis for letter, axis in cut.items() if letter not in out)
    return " ".join([*(cut.get(a, ".") for a in out), *(f"+{axis}" for axis in owed)])


def _letters(spec, cut):
    out = spec.partition("->")[2]
    owed = sorted(a for a in cut if a not in out)
    return " ".join([*(a if a in cut else "." for a in out), *(f"+{a}" for a in owed)])


def _unsorted(spec, cut):
    out = spec.partition("->")[2]
    owed = [f"+{axis}" for a, axis in cut.items() if a not in out]
    return " ".join([*(cut.get(a, ".") for a in out), *owed])


def dual(kind, owed):
    """Return the move of the gradient in the backward pass, or None."""
    if kind == "allgather":
        return "reduce-scatter" if owed else "slice"
    if kind == "allreduce":
        return "allreduce" if owed else None
    return "all-to-all" if kind == "all-to-all" else "allgather"


def _dual(**instead):
    """Return the table with some entries as a learner might fill them in."""

    def made(kind, owed):
        found = instead.get(kind.replace("-", "_"), dual)
        return found(owed) if found is not dual else dual(kind, owed)

    return made


QUESTIONS = {
    1: Question(
        "the numbers that each device sends",
        180,
        [
            (240, "A device keeps one part of its array: that one is not sent."),
            (720, "That is an allgather: each device would get the whole array."),
            (60, "That is the part that a device keeps, or sends to one other."),
        ],
    ),
    2: Task(
        "a function `output(spec, cut)`",
        output,
        [
            (lambda spec, cut:
             " ".join(cut.get(a, ".") for a in spec.partition("->")[2]),
             "A letter that is cut and summed leaves a sum owed."),
            (_letters, "Write the mesh axis, not the letter that it cuts."),
            (_unsorted, "Sort the sums that are owed."),
        ],
        judge=compared(output, [
            ("nd,df->nf", {}), ("nd,df->nf", {"n": "data"}),
            ("nd,df->nf", {"d": "tensor"}), ("nd,df->fn", {"f": "t", "n": "d"}),
            ("bthk,dhk->btd", {"h": "tensor", "b": "data"}),
            ("nd,nd->n", {"d": "tensor"}), ("nde,def->nf", {"e": "b", "d": "a"}),
            ("nde,def->nf", {"d": "b", "e": "a", "f": "c"}),
        ]),
    ),
    3: Task(
        "a function `dual(kind, owed)`",
        dual,
        [
            (_dual(allreduce=lambda owed: "allreduce"),
             "A gradient that is whole already would be counted once per device."),
            (_dual(allreduce=lambda owed: None),
             "If the gradient is owed, the sum has to be done."),
            (_dual(allgather=lambda owed: "reduce-scatter"),
             "Gradients that are equal must not be summed: a slice is enough."),
        ],
        judge=compared(dual, [
            ("all-to-all", False), ("slice", False), ("reduce-scatter", False),
            ("allgather", True), ("allgather", False), ("allreduce", True),
            ("allreduce", False),
        ]),
    ),
}
