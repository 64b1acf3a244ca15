"""A cost model: the time of a training step, on this machine and on clusters.

| file | what it holds | chapter |
|---|---|---|
| `fit` | the constants of a model, from measured times | Fitting a cost model |
| `step` | a message and a step in closed form: exchange, overlap, efficiency, batch; three networks | Fitting a cost model, One to 4,096 devices |
| `simulator` | a simulator where no formula exists: stragglers, queues | Simulating a cluster |
| `planner` | all layouts of a decoder on some devices: memory, time, the fastest that fits | Which plan? A planner for layouts and meshes |
| `failures` | the interval of checkpoints, and the cost of failures | One to 4,096 devices, Faults and recovery |

    from d2l_ext.scale import step

    step.seconds(step.VGG11, 1024, 8, step.Device(flops=5e12), step.network(10))

All of it is arithmetic on numbers and plans: nothing here runs on a device.
"""  # noqa: E501  (a table)
