"""Answers to exercises of the part on pipelines."""

from .question import Question

QUESTIONS = {
    ("lstm_pipeline", 1): Question(
        "the number of time steps",
        21,
        [
            (20, "With 20 steps the bound is a little below 3.5."),
            (22, "Fewer are enough: try T = 21."),
            (28, "T steps on k devices take T + k - 1 slots, not T + k."),
        ],
    ),
    ("lstm_pipeline", 2): Question(
        "the largest number of time steps with which the pipeline sends less",
        130,
        [
            (131, "With 131 the pipeline sends more already."),
            (128, "The embedding, the decoder and the biases are parameters, too."),
            (65, "What leaves device 0? The gradients come to it."),
            (261, "With two devices the ring sends one array from each, not two."),
        ],
    ),
    ("lstm_pipeline", 3): Question(
        "how many times as many bytes cross",
        3,
        [
            (1, "The contiguous cut crosses once. Count the changes of device."),
            (2, "From layer 0 to 1, from 1 to 2, and on: count again."),
            (4, "Four layers have three places between them."),
        ],
    ),
    ("where_to_cut", 2): Question(
        "the number of words, with H = 256",
        8 * 256,
        [
            (4 * 256, "A layer has a matrix for its input and one for its state."),
            (2 * 256, "Each of the two matrices has 4H rows."),
            (8, "That is the factor of H."),
        ],
        tolerance=0.001,
    ),
    ("where_to_cut", 5): Question(
        "the new time of a step divided by the old one, for T = 12",
        6 * 14 / (9 * 13),
        [
            (2 / 3, "Three devices take longer to fill and to empty."),
            (1 / 3, "Two devices shared the work before, not one."),
            (9 * 13 / (6 * 14), "Divide the new time by the old one."),
        ],
        tolerance=0.01,
    ),
    ("buckets", 3): Question(
        "how many times too small the gradient is",
        2,
        [
            (0.5, "It is half as large as it should be: how many times too small?"),
            (1, "How many places are there, and how many characters?"),
        ],
    ),
    ("buckets", 4): Question(
        "whether it comes to less than 1.2 of the longest: True or False",
        False,
        [(True, "What becomes of an array that is too large to share?")],
    ),
    ("micro_batches", 1): Question(
        "the number of micro-batches",
        63,
        [
            (70, "The bubble is a share of all slots, m + p - 1, and not of m."),
            (72, "A stage waits for the p - 1 others, not for p."),
            (64, "One fewer is enough: p - 1 is 7."),
        ],
    ),
    ("micro_batches", 4): Question(
        "how many times too large the gradients are, with equal sizes",
        4,
        [
            (0.25, "They are too large: four means are added."),
            (1, "A sum of four means is not the mean of all."),
            (16, "The number of examples does not matter, only that of the means."),
        ],
    ),
}
