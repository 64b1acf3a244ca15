"""How many steps a batch size needs: more devices mean larger batches, to a limit."""

from .link import at_least_zero


def steps(batch, critical, least):
    """Steps to a given loss with batches of `batch` examples: S = S_min·(1 + B_crit/B).

    `critical` B_crit: the critical batch size, at which a run takes twice the fewest
    steps and twice the fewest examples. `least` S_min: the steps of a huge batch.
    With B far below B_crit twice the batch means half of the steps; far above, it
    means nothing.

    Source: McCandlish, Kaplan and Amodei, "An Empirical Model of Large-Batch Training"
    (2018). Shallue et al., "Measuring the Effects of Data Parallelism on Neural
    Network Training" (2019), saw the same three regions in all of their networks.
    Developed in the chapter *A cost model*.
    """
    if not batch > 0:
        raise ValueError(f"a batch has more than {batch} examples")
    at_least_zero("critical", critical)
    return least * (1 + critical / batch)


def examples(batch, critical, least):
    """Examples that are seen until then: B·S."""
    return batch * steps(batch, critical, least)


def seconds_to_loss(step_seconds, batch, critical, least):
    """Seconds of training: what counts, and what neither step nor epoch tells."""
    return step_seconds * steps(batch, critical, least)
