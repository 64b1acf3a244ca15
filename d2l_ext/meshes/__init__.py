"""Meshes: several ways of splitting at once, on devices with named axes.

| file | what it holds | chapter |
|---|---|---|
| `mesh` | devices with named axes, and their groups along each axis | Data × tensor × pipeline: 3D parallelism on a device mesh |
| `decoder` | a decoder split three ways, its step, and its bytes by axis | Data × tensor × pipeline: 3D parallelism on a device mesh |
| `layout` | where an array lies on a mesh, and the moves between two layouts | Say where it lies: a sharding compiler |
| `compiler` | the steps of all devices, from the layouts of some arrays | Say where it lies: a sharding compiler |
| `compiled` | runs these steps on the devices of a mesh | Say where it lies: a sharding compiler |
| `programs` | a decoder as a program, and its layouts | Say where it lies: a sharding compiler |
| `hierarchy` | an allreduce in two levels: inside hosts, between them | Two kinds of links: hierarchical allreduce |
"""  # noqa: E501  (a table)
