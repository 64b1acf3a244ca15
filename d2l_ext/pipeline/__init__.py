"""Pipeline parallelism: layers on several devices.

| file | what it holds | chapter |
|---|---|---|
| `lstm` | the unrolled LSTM, one group per layer; one step of it | The LSTM as a pipeline: pipeline parallelism over time |
| `graph` | groups placed and bound; bytes that cross between devices | The LSTM as a pipeline: pipeline parallelism over time, Where to cut: pipeline parallelism with unequal layers |
| `wavefront` | the device that works on each time step: planned, observed | The LSTM as a pipeline: pipeline parallelism over time |
| `layer_costs` | time and bytes of each layer, cut out of the graph | Where to cut: pipeline parallelism with unequal layers |
| `partition` | all placements, the one with the smallest bottleneck, and predicted step times | Where to cut: pipeline parallelism with unequal layers |
| `buckets` | sequences of different lengths: one graph per length | Buckets: sequences of different lengths |
| `schedule` | GPipe, 1F1B, interleaved and zero-bubble schedules as data: the clock, the bubble | Micro-batches: pipeline parallelism with GPipe and 1F1B, Shorter bubbles: interleaved 1F1B and zero-bubble pipelines |
| `microbatch` | stages on devices, their backward work whole or divided, and the loop that runs a schedule | Micro-batches: pipeline parallelism with GPipe and 1F1B, Shorter bubbles: interleaved 1F1B and zero-bubble pipelines |
"""  # noqa: E501  (a table)

from .. import lazy

__getattr__ = lazy.names(__name__, graph="Pipeline bind placement split")
