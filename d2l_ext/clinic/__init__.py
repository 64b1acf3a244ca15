"""The clinic: hangs, and results that are wrong without an error.

| file | what it holds | chapter |
|---|---|---|
| `flight_recorder` | the last calls of each rank, in files that outlive a hang | Which rank, which call? |
| `verdict` | which rank is missing from which call, by the recorded calls of all ranks | Which rank, which call? |
| `norms` | the norm of a gradient that is divided in any way; clipping by it | Wrong without an error: sums, norms and statistics over devices |
| `batch_norm` | batch normalization by the statistics of all devices, forward and backward | Wrong without an error: sums, norms and statistics over devices |
| `checksums` | checksums of weights, and which replica differs in which array | Replicas that part ways: seeds, data and state over devices |
"""  # noqa: E501
