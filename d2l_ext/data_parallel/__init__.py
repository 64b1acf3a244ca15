"""Data parallelism: a replica per device, one sum of gradients per step.

| file | what it holds | chapter |
|---|---|---|
| `lenet` | LeNet: its parameters, and its forward pass as a plain function | Data parallelism from scratch |
| `minibatch` | a minibatch, divided among devices | Data parallelism from scratch |
| `step` | the training step: replicas, gradients, one update for all | Data parallelism from scratch |
| `allreduce/naive` | the sum on every device: device 0 gathers, sums, and sends the sum back | Data parallelism from scratch, Allreduce: naive, tree, ring |
| `allreduce/binomial_tree` | the same with whole arrays, in a logarithmic number of rounds | Allreduce: naive, tree, ring |
| `allreduce/ring_of_chunks` | the same with chunks around a ring: reduce-scatter, then allgather | Allreduce: naive, tree, ring |
| `allreduce/halving` | a logarithmic number of rounds; if the number of devices is a power of two that divides the elements, each sends the same number of bytes as in the ring | Halving and doubling: allreduce on many devices |
| `allreduce/double_tree` | two trees, with half of the array in each | Halving and doubling: allreduce on many devices |
| `allreduce/in_network` | sums in switches: in the tables only | Halving and doubling: allreduce on many devices |
| `allreduce/algorithm` | what the tables, the simulator and the trainer know about each | the trainer's command |
| `traffic` | messages between devices: sent, and counted | Allreduce: naive, tree, ring |
| `costs` | bytes, rounds and seconds of an allreduce, in closed form | Allreduce: naive, tree, ring, Halving and doubling: allreduce on many devices |
| `flat` | all parameters in one array: one allreduce per step; a step recorded once and replayed | Allreduce: naive, tree, ring, Why is there no speed-up? |
| `overlap` | gradients in buckets, exchanged while backward goes on; a simulated link that uses no core | Overlap: gradients sent while backward goes on |
| `large_batch` | LARS and LAMB, warm-up, the noise in the gradients | Large batches: warm-up, LARS and LAMB |
| `diagnose` | why there is no speed-up: a verdict, blocking calls | Why is there no speed-up? |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(
    __name__, step="History evaluate get_params split_batch train train_batch"
)
