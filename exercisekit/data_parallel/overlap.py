"""Exercises of the chapter *Overlap*."""

from d2l_ext.data_parallel import overlap

from ..question import Question, Task, by_cases, compared


def _judge_fill(function, sizes, limit):
    found = [list(bucket) for bucket in function(sizes, limit)]
    enough = len(overlap.fill_buckets(sizes, limit))
    full = [sum(sizes[i] for i in b) for b in found if len(b) > 1]
    if sorted(i for bucket in found for i in bucket) != list(range(len(sizes))):
        return f"{found} does not contain each parameter exactly once."
    if [i for b in reversed(found) for i in b] != list(range(len(sizes))):
        return (f"{found}: read from the last bucket to the first, the parameters do "
                "not ascend.")
    if any(size > limit for size in full):
        return f"{found} has a bucket of size {max(full)}, above the limit."
    if len(found) > enough:
        return f"{found} has {len(found)} buckets instead of {enough}."
    return ""


def _from_the_first(sizes, limit):
    last = len(sizes) - 1
    return [[last - i for i in reversed(bucket)]
            for bucket in overlap.fill_buckets(sizes[::-1], limit)]


def exposed(ready, takes):
    free = 0
    for start, time in zip(ready, takes):
        free = max(free, start) + time
    return free - ready[-1]


def exposed_with(n, layers, backward, message, latency):
    stops = [*range(n, layers, n), layers]  # after so many layers a bucket is ready
    counts = [stop - start for start, stop in zip([0, *stops], stops)]
    return exposed([stop * backward for stop in stops],
                   [latency + count * message for count in counts])


def best(layers, backward, message, latency):
    return min(range(layers, 0, -1),
               key=lambda n: exposed_with(n, layers, backward, message, latency))


def _smallest(layers, backward, message, latency):
    return min(range(1, layers + 1),
               key=lambda n: exposed_with(n, layers, backward, message, latency))


QUESTIONS = {
    1: Question(
        "the share, from 0 to 1",
        0.875,
        [
            (15 / 16, "A bucket has two layers, and waits for both."),
            (1, "The last bucket is complete only when backward has ended."),
            (0.125, "That is the share of the last bucket."),
        ],
    ),
    2: Task(
        "a function `fill(sizes, limit)`",
        overlap.fill_buckets,
        [
            (_from_the_first,
             "Backward computes the last layer's gradient first, so go from the last "
             + "parameter to the first."),
            (lambda sizes, limit:
             [bucket[::-1] for bucket in overlap.fill_buckets(sizes, limit)],
             "Within a bucket the numbers ascend: insert at the front."),
            (lambda sizes, limit: overlap.fill_buckets(sizes, limit - 1),
             "A parameter that fills the bucket to its limit still fits."),
        ],
        judge=by_cases(_judge_fill, "Sizes {}, limit {}", [
            ([3], 5), ([1, 9], 5), ([1, 1, 1], 3), ([1, 9, 1], 5), ([2, 1, 2], 6),
            ([4, 2, 3, 1, 5], 5),
        ]),
    ),
    3: Task(
        "a function `exposed(ready, takes)`",
        exposed,
        [
            (lambda ready, takes: sum(takes),
             "That is the whole exchange. Part of it is hidden behind backward."),
            (lambda ready, takes: sum(takes) - ready[-1],
             "A message cannot start before its bucket is ready."),
            (lambda ready, takes:
             max(start + time for start, time in zip(ready, takes)) - ready[-1],
             "There is one link: a message waits for the one before it."),
        ],
        judge=compared(exposed, [
            ([2], [3]), ([1, 2, 3], [0.5, 0.5, 0.5]), ([1, 2, 3], [2, 2, 2]),
            ([1, 5, 6], [9, 1, 2]), ([1, 2, 9], [1, 1, 0.5]),
            ([1, 2, 9, 10], [3, 1, 4, 1]),
        ], tolerance=1e-9),
    ),
    4: Task(
        "a function `best(layers, backward, message, latency)`",
        best,
        [
            (lambda layers, backward, message, latency: layers,
             "One bucket hides nothing. It is best only if the latency is large."),
            (lambda layers, backward, message, latency: 1,
             "Each bucket pays the latency, so with many buckets the link is slower "
             + "than backward."),
            (_smallest, "If several are best, return the largest of them."),
        ],
        judge=compared(best, [
            (1, 10, 4, 3), (3, 10, 4, 0), (3, 10, 4, 12), (12, 10, 4, 12),
            (10, 10, 12, 30), (5, 1, 4, 4), (7, 3, 5, 6), (12, 10, 4, 1000),
        ]),
    ),
}
