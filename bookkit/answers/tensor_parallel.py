"""Answers to exercises of the part on tensor parallelism."""

from .question import Question

QUESTIONS = {
    ("layerwise", 1): Question(
        "the number of devices",
        6,
        [
            (5, "A fifth is still more than 100 MB: round up."),
            (3, "The block has two matrices."),
            (2, "A number has 4 bytes, and there are two matrices."),
            (11, "That would be double precision."),
        ],
    ),
    ("layerwise", 3): Question(
        "the bytes that each device gives to the allgather of the hidden values",
        16 * 1024 * 4,
        [
            (16 * 2048 * 4, "Each device has half of the hidden values."),
            (16 * 1024, "These are numbers; each has 4 bytes."),
            (16 * 512 * 4, "That is the output. What does the second layer read?"),
        ],
    ),
    ("layerwise", 4): Question(
        "the share of wrong values, about",
        0.5,
        [
            (0.25, "There are two ways to have different signs."),
            (0.75, "If both parts are negative, both ways give 0."),
            (1, "If both parts are positive, nothing is cut off."),
        ],
        tolerance=0.1,
    ),
}
