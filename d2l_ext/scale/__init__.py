"""How long a training step will take, on this machine and on clusters: a cost model.

    from d2l_ext.scale import step
    from d2l_ext.scale.link import network
    from d2l_ext.scale.sizes import VGG11

    step.seconds(VGG11, 1024, 8, step.Device(flops=5e12), network(10))

| modules | hold |
|---|---|
| `link`, `fit` | the α–β model of a message; constants from measured times |
| `sizes` | three networks: bytes to exchange, work per example |
| `exchange`, `step` | exchange and step in closed form; efficiency, servers |
| `pipelines`, `layerwise` | the same for model parallelism |
| `restarts`, `batch_size` | failures and checkpoints; what a larger batch is worth |
| `events`, `rounds`, `server_run` | the simulator, for what has no closed form |
| `cases`, `machine` | this machine: its constants, and what they predict |
| `workloads`, `worker`, `jobs`, `study` | the steps that are measured for that |

All functions of the first five rows are pure: numbers in, numbers out.
Developed in the chapter *A cost model*.
"""
