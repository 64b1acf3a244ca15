"""Answers to exercises of the part on devices."""

from .question import Question

QUESTIONS = {
    ("devices", 2): Question(
        "whether the devices overlap: True or False",
        False,
        [(True, "Which array does the second product read, and who makes it?")],
    ),
    ("devices", 3): Question(
        "a list of two numbers of bytes: a copy for each use, a single copy",
        [16_000_000, 4_000_000],
        [
            ([4_000_000, 1_000_000], "These are numbers; each has 4 bytes."),
            ([4_000_000, 16_000_000], "Which of the two comes first?"),
            ([32_000_000, 8_000_000], "A number of 8 bytes is in double precision."),
        ],
    ),
    ("three_ways", 1): Question(
        "the smallest number of examples",
        9,
        [
            (8, "With 8 examples both send the same, and not more."),
            (7, "Data parallelism sends the gradient of W2, too."),
            (5, "The sum of the gradients goes back to the other device."),
            (17, "The gradients of the hidden values go back to device 0."),
        ],
    ),
    ("three_ways", 4): Question(
        'the way that fails: "network", "layerwise" or "data"',
        "data",
        [
            ("network", "Nobody holds more than three of the ten layers."),
            ("layerwise", "Each device holds a quarter of each layer."),
        ],
    ),
}
