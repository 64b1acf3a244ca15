"""Pipeline parallelism: layers on several devices.

| file | what it holds | chapter |
|---|---|---|
| `lstm` | the LSTM, unrolled, with a group for every layer; one step of it | The LSTM as a pipeline: pipeline parallelism over time |
| `graph` | groups placed and bound; what crosses between devices | The LSTM as a pipeline: pipeline parallelism over time, Where to cut: pipeline parallelism with unequal layers |
| `wavefront` | who works on which time step: planned, observed | The LSTM as a pipeline: pipeline parallelism over time |
| `layer_costs` | time and bytes of each layer, cut out of the graph | Where to cut: pipeline parallelism with unequal layers |
| `partition` | all placements, the one with the least bottleneck, and a step under each, predicted | Where to cut: pipeline parallelism with unequal layers |
| `buckets` | sequences of different lengths: a graph for each | Buckets: sequences of different lengths |
| `schedule` | GPipe, 1F1B, interleaved and zero-bubble schedules as data: the clock, the bubble | Micro-batches: pipeline parallelism with GPipe and 1F1B, Shorter bubbles: interleaved 1F1B and zero-bubble pipelines |
| `microbatch` | stages on devices, their backward work whole or divided, and the loop that runs a schedule | Micro-batches: pipeline parallelism with GPipe and 1F1B, Shorter bubbles: interleaved 1F1B and zero-bubble pipelines |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(__name__, graph="Pipeline bind placement split")
