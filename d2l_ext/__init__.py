"""The small library of the book *Many Devices, One Model*.

Import it before mxnet and d2l: it sets what MXNet's engine reads at its start. Each
part of the book, from Devices to Scale, has a folder here. Beside the folders:

| file | what it holds | chapter |
|---|---|---|
| `checks` | checks of arguments and flags: whole numbers, known names | all |
| `lazy` | lazy imports: names are loaded on first access | all |
| `palette` | the colour of a device and the hatch of a kind of work | all with drawings |
| `runtime` | settings that MXNet's engine reads at its start; ending a worker that fails | Devices, Launching jobs |
| `train` | the trainer's command, `python -m d2l_ext.train` | Launching jobs |
"""  # noqa: E501

from . import lazy, runtime
from .devices import gpus

runtime.check_python()
runtime.refuse_a_role_in_a_notebook()
runtime.prepare()
runtime.keep_memory()
if runtime.preload_cuda():
    gpus.hide()
    gpus.leave_fusion_off()
runtime.leave_on_error()

__version__ = "0.1.0"
#: Functions that the source documents import from here. `train` is also a file, the
#: trainer's command: only `python -m` runs it, so that the name stays the function's.
__getattr__ = lazy.names(
    __name__,
    **{
        "data_parallel.allreduce": "allreduce",
        "data_parallel.lenet": "lenet",
        "data_parallel.minibatch": "split_batch",
        "data_parallel.step": "get_params train train_batch",
    },
)
