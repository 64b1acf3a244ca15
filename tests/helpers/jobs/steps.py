"""A worker that pushes and pulls until it is ended; each step is a line.

    steps.py [type of the store] [number of steps]
"""

import d2l_ext  # noqa: F401, I001
import os
import sys
import time

import mxnet as mx

kv = mx.kv.create(sys.argv[1] if len(sys.argv) > 1 else "dist_sync")
kv.init("weight", mx.nd.zeros(1000))
step = 0
last = int(sys.argv[2]) if len(sys.argv) > 2 else -1
while step != last:
    kv.push("weight", mx.nd.ones(1000))
    weight = mx.nd.zeros(1000)
    kv.pull("weight", out=weight)
    weight.wait_to_read()
    step += 1
    print("step", step, "pid", os.getpid(), flush=True)
    time.sleep(0.02)
