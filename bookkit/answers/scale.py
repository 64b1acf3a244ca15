"""Answers to exercises of the part on scale."""

from .question import Question

QUESTIONS = {
    ("scale", 1): Question(
        "a number of bytes",
        562_500,
        [
            (62_500, "With as many, half of the time is latency."),
            (625_000, "Latency is a tenth of the whole time, not of the rest."),
            (4_500_000, "These are bits."),
        ],
        tolerance=0.001,
    ),
    ("scale", 2): Question(
        "how many times as long a step is, with eight micro-batches",
        57 / 33,
        [
            (2, "That is the limit for very many micro-batches."),
            (1.25, "That is how much more work there is. Who waits for whom?"),
        ],
        tolerance=0.01,
    ),
    ("scale", 4): Question(
        "the time of a step with equal shares; without the slow device it is 1",
        1.3,
        [
            (1.0375, "That is the mean. Everybody waits for the slowest."),
            (1.03, "That is with balanced shares."),
        ],
        tolerance=0.002,
    ),
    ("scale", 5): Question(
        "the factor of the best interval",
        10**0.5,
        [
            (10, "The time to write stands under a square root."),
            (10**-0.5, "Is it worth saving more often when it takes longer?"),
        ],
        tolerance=0.01,
    ),
    ("rosetta", 1): Question(
        "the factor for two devices",
        2,
        [
            (1, "A sum of two means is not the mean of all."),
            (0.5, "Nobody divides by the number of devices, so it is too large."),
            (64, "The losses are means already. How many are added?"),
        ],
    ),
}
