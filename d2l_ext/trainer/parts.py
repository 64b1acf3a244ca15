"""One worker's part of the data, in as many minibatches as everybody else's."""

from math import ceil

from ..data.batches import Batches


class Part(Batches):
    """A `Batches` of one of `num_parts` workers; its last minibatch may be empty.

    Parts differ in size by one example at most, so one worker may have its last
    minibatch one step before another. A synchronous store waits for the gradients
    of all workers in every step: with one step less, a worker lets the others wait
    for ever. So `len()` is the same for all, and the worker with nothing left gets
    arrays of no examples.

    Developed in the chapter *Synchronous and asynchronous training*.
    """

    def __len__(self):
        return ceil(len(self.X) / (self.num_parts * self.batch_size))

    def together(self, step):
        """Examples that all workers have together in minibatch `step`, from 0."""
        whole = self.num_parts * self.batch_size
        return min(whole, len(self.X) - step * whole)

    def own(self):
        """Examples of this worker in an epoch."""
        return len(range(self.part_index, len(self.X), self.num_parts))

    def _minibatches(self, order):
        yield from super()._minibatches(order)
        if ceil(len(order) / self.batch_size) < len(self):
            yield self._pick(order[:0])
