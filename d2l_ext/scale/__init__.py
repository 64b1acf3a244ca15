"""How long a training step will take, on this machine and on clusters: a cost model.

| file | what it holds | chapter |
|---|---|---|
| `fit` | the constants of a model, from measured times | Fitting a cost model |
| `step` | a message and a step in closed form: exchange, overlap, efficiency, batch; three networks | Fitting a cost model, One to 4,096 devices |
| `simulator` | for what has no formula: stragglers, queues | Simulating a cluster |
| `failures` | checkpoints: how often, and what a failure costs | One to 4,096 devices, Faults and recovery |

    from d2l_ext.scale import step

    step.seconds(step.VGG11, 1024, 8, step.Device(flops=5e12), step.network(10))

Functions take numbers and give numbers; nothing here runs on a device.
"""  # noqa: E501  (a table)
