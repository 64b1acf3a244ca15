"""The small library of the book *Many Devices, One Model*.

Import it before mxnet and d2l: it sets what MXNet's engine reads at its start.
"""

from . import gpus, runtime, worker_exit

runtime.check_python()
runtime.prepare()
if runtime.preload_cuda():
    gpus.hide()
    gpus.leave_fusion_off()
worker_exit.leave_on_error()

__version__ = "0.1.0"
