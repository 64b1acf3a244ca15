"""Answers to exercises of the part on data parallelism."""

from .question import Question

QUESTIONS = {
    ("data_parallel_scratch", 1): Question(
        "the number of images that each device gets",
        16,
        [
            (64, "The minibatch is divided, and does not grow with the devices."),
            (32, "That is the share on two devices."),
        ],
    ),
    ("data_parallel_scratch", 2): Question(
        "the number of steps",
        1,
        [
            (0, "Before the first step all replicas are copies of the same."),
            (2, "Device 1 already takes its first step with its own gradient alone."),
        ],
    ),
    ("allreduce", 1): Question(
        "the number of rounds",
        14,
        [
            (7, "That is the reduce-scatter. The allgather takes as many again."),
            (16, "A chunk is complete after k - 1 rounds, not after k."),
            (6, "That is the tree."),
            (8, "It takes two halves, each of k - 1 rounds."),
        ],
    ),
    ("allreduce", 2): Question(
        "a number of bytes",
        22 * 50e-6 / (6.125 * 1e-9),
        [
            (26 * 50e-6 / (2.125 * 1e-9), "The tree's messages also run backwards."),
            (7 * 50e-6 / (7.0625 * 1e-9), "The ring has two halves of 15 rounds."),
            (179.6, "That is in kilobytes."),
        ],
        tolerance=0.01,
    ),
    ("concise", 1): Question(
        "how many times too small a step is, about",
        2,
        [
            (1, "That would be so if somebody added up the gradients."),
            (0.5, "It is half as large as it should be: how many times too small?"),
            (4, "The gradient is divided by the whole minibatch once, not twice."),
        ],
    ),
    ("concise", 3): Question(
        "a list of three shares",
        [57, 29, 14],
        [
            ([57, 28, 14], "One example is lost: the shares must add up to 100."),
            ([34, 33, 33], "That is the even split."),
            ([14, 29, 57], "The fastest device gets the most."),
        ],
    ),
    ("no_speed_up", 1): Question(
        "the number of waits in a step",
        1,
        [
            (2, "A single call waits for all devices."),
            (0, "`npx.waitall()` is itself a wait."),
        ],
    ),
    ("no_speed_up", 3): Question(
        "how many times as fast as one device the step can be",
        8 / 7,
        [
            (7 / 8, "That is the larger share. The step takes this part of the time."),
            (2, "That is the limit for an even split."),
            (7, "That is how the shares compare. Compare the larger with the whole."),
            (8, "That is what the smaller share alone would gain. Who ends last?"),
        ],
        tolerance=0.005,
    ),
}
