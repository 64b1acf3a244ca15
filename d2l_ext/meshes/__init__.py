"""Meshes: several ways of splitting at once, on devices with named axes.

| file | what it holds | chapter |
|---|---|---|
| `mesh` | devices with named axes, and their groups along each axis | Data × tensor × pipeline: 3D parallelism on a device mesh |
| `decoder` | a decoder split three ways, its step, and its bytes by axis | Data × tensor × pipeline: 3D parallelism on a device mesh |
| `hierarchy` | an allreduce in two levels: inside hosts, between them | Two kinds of links: hierarchical allreduce |
"""  # noqa: E501  (a table)
