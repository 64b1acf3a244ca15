"""Print the GPUs as nvidia-smi does, one per line: name, compute capability.

For tools/find_device.sh: before driver 510, nvidia-smi does not report the capability.
"""

import sys

from d2l_ext.devices import gpus


def main(read=gpus.read):
    """Print the GPUs; return 1 without a GPU, or if the driver cannot run CUDA 11."""
    answers = read()
    if not answers.driver or gpus.driver_problem(answers.driver):
        return 1
    for gpu in answers.gpus:
        print(f"{gpu.name}, {gpus.dotted(gpu.capability)}")
    return 0 if answers.gpus else 1


if __name__ == "__main__":
    sys.exit(main())
