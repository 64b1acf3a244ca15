"""Exercises of the chapter *Overlap*."""

from d2l_ext.data_parallel import overlap

from ..question import Question, Task, by_cases, compared


def _judge_fill(function, sizes, limit):
    found = [list(bucket) for bucket in function(sizes, limit)]
    enough = len(overlap.fill_buckets(sizes, limit))
    full = [sum(sizes[i] for i in b) for b in found if len(b) > 1]
    if sorted(i for bucket in found for i in bucket) != list(range(len(sizes))):
        return f"{found} does not have each parameter once."
    if [i for b in reversed(found) for i in b] != list(range(len(sizes))):
        return f"{found} does not begin with the last parameters, in order."
    if any(size > limit for size in full):
        return f"{found} has a bucket of {max(full)}."
    if len(found) > enough:
        return f"{found} has {len(found)} buckets, and not {enough}."
    return ""


def exposed(ready, takes):
    """How long messages, one after another, go on after the last is ready."""
    free = 0
    for start, seconds in zip(ready, takes):
        free = max(free, start) + seconds
    return free - ready[-1]


def best_bucket(layers, backward, message, latency):
    """How many layers to put into a bucket, so that the step ends soonest."""

    def end(n):
        stops = [min(stop, layers) for stop in range(n, layers + n, n)]
        counts = [stop - start for start, stop in zip([0, *stops], stops)]
        takes = [latency + count * message for count in counts]
        return exposed([stop * backward for stop in stops], takes)

    return min(reversed(range(1, layers + 1)), key=end)


QUESTIONS = {
    1: Question(
        "the share, from 0 to 1",
        0.875,
        [
            (15 / 16, "A bucket has two layers, and waits for both."),
            (1, "The last bucket is full only when backward has ended."),
            (0.125, "That is the share of the last bucket."),
        ],
    ),
    2: Task(
        "a function `fill(sizes, limit)`",
        overlap.fill_buckets,
        [
            (lambda sizes, limit: [[i] for i in reversed(range(len(sizes)))],
             "Each parameter has a bucket of its own: the small ones can share."),
            (lambda sizes, limit: [list(range(len(sizes)))],
             "All are in one bucket, whatever the limit: nothing is sent before "
             + "backward ends."),
            ("reversed(range(len(sizes)))", "range(len(sizes))",
             "Backward makes the last layer's gradient first: so go from the last "
             + "parameter to the first."),
            ("insert(0, i)", "append(i)",
             "Within a bucket the numbers rise: a new one goes in front."),
            ("sizes[i] > room", "sizes[i] >= room",
             "What fills the bucket to its limit still fits."),
            ("room -= sizes[i]", "pass",
             "What is in the bucket already takes room, too."),
            ("room = limit", "room = limit - sizes[i]",
             "The first parameter of each bucket is deducted twice."),
        ],
        judge=by_cases(_judge_fill, "Sizes {}, limit {}", [
            ([3], 5), ([1, 1, 1], 3), ([1, 9, 1], 5), ([2, 1, 2], 6),
            ([4, 2, 3, 1, 5], 5),
        ]),
    ),
    3: Task(
        "a function `exposed(ready, takes)`",
        exposed,
        [
            (lambda ready, takes: sum(takes),
             "That is the whole exchange. Part of it is hidden behind backward."),
            ("max(free, start)", "free",
             "A message cannot start before its bucket is ready."),
            ("max(free, start)", "start",
             "There is one link: a message waits for the one before it. Only then is "
             + "the last bucket's time all."),
            (" - ready[-1]", "",
             "That is when the exchange ends. How long is it since backward ended?"),
            ("ready[-1]", "ready[0]",
             "That counts from the first bucket on. Backward ends with the last."),
            ("max(free, start) + seconds", "max(free, start + seconds)",
             "A message that waits for the link still takes its time after that."),
        ],
        judge=compared(exposed, [
            ([2], [3]), ([1, 2, 3], [0.5, 0.5, 0.5]), ([1, 2, 3], [2, 2, 2]),
            ([1, 5, 6], [9, 1, 2]), ([1, 2, 9], [1, 1, 0.5]),
        ], tolerance=1e-9),
    ),
    4: Task(
        "a function `best(layers, backward, message, latency)`",
        best_bucket,
        [
            (lambda layers, backward, message, latency: layers,
             "One bucket hides nothing. That is best only where latency is all."),
            (lambda layers, backward, message, latency: 1,
             "Each bucket pays the latency: with many of them the link is the slow "
             + "one."),
            ("reversed(range(1, layers + 1))", "range(1, layers + 1)",
             "Of several that are best, the largest is asked for."),
            ("range(1, layers + 1)", "range(1, layers)",
             "All layers in one bucket is a way, too."),
            ("latency + count * message", "latency + n * message",
             "The last bucket may have fewer layers, and then takes less."),
            ("latency + count * message", "count * message",
             "Each bucket takes the latency, however small it is."),
            ("latency + count * message", "count * (latency + message)",
             "The latency is paid once for a bucket, and not for each layer."),
            ("min(reversed", "max(reversed", "That is where the step ends last."),
        ],
        judge=compared(best_bucket, [
            (1, 10, 4, 3), (3, 10, 4, 0), (3, 10, 4, 12), (12, 10, 4, 12),
            (10, 10, 12, 30), (5, 1, 4, 4), (7, 3, 5, 6), (12, 10, 4, 1000),
        ]),
    ),
}
