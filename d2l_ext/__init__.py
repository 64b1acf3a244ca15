"""The small library of the book *Many Devices, One Model*.

Import it before mxnet and d2l: it sets what MXNet's engine reads at its start.
"""

from . import lazy, runtime, worker_exit
from .devices import gpus

runtime.check_python()
runtime.prepare()
if runtime.preload_cuda():
    gpus.hide()
    gpus.leave_fusion_off()
worker_exit.leave_on_error()

__version__ = "0.1.0"
#: The functions of the source documents have their names here. Two are modules as
#: well, `allreduce` and `train`, which can be called.
__getattr__ = lazy.names(
    __name__,
    **{
        "data_parallel.lenet": "lenet",
        "data_parallel.minibatch": "split_batch",
        "data_parallel.step": "get_params train_batch",
    },
)
