"""Which GPUs and drivers MXNet's CUDA wheel can work with, and why not others."""

#: Compute capabilities that `mxnet-cu112==1.9.1` holds machine code for, read from
#: its fat binaries. There is no PTX that a driver could translate for later ones.
CODE = ((5, 0), (6, 0), (7, 0), (8, 0), (8, 6))
HOLDS = "MXNet 1.9.1 holds machine code for 5.0 to 8.x alone"
#: The oldest driver that runs every CUDA 11 (NVIDIA, *CUDA Compatibility*).
OLDEST_DRIVER = (450, 80, 2)
#: The driver of CUDA 11.8. MXNet compiles fused operators while it runs, with the
#: compiler of 11.8, and an older driver does not read what that writes.
FUSION_DRIVER = (520, 61, 5)


def code_for(capability):
    """Return the code that a GPU of `capability`, `(major, minor)`, would run.

    Machine code for X.y runs on capability X.z with z ≥ y, and nowhere else.
    None if there is none. Source: NVIDIA, *CUDA C++ Programming Guide*.
    """
    major, minor = capability
    fitting = [code for code in CODE if code[0] == major and code[1] <= minor]
    return max(fitting, default=None)


def why_not(capability):
    """Return None if MXNet runs on such a GPU, else the reason in half a sentence."""
    if code_for(capability):
        return None
    return f"its compute capability is {dotted(capability)}, and {HOLDS}"


def version(text):
    """Return a driver's version as numbers: `'535.54.03'` is `(535, 54, 3)`."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def driver_problem(text):
    """Return None if a driver of this version runs CUDA 11, else what to do."""
    if version(text) >= OLDEST_DRIVER:
        return None
    return f"too old for CUDA 11, which needs {dotted(OLDEST_DRIVER)} or later"


def dotted(numbers):
    """`(450, 80, 2)` as `'450.80.02'`, `(8, 6)` as `'8.6'`: as NVIDIA writes them."""
    first, *rest = numbers
    return ".".join([str(first), *(f"{n:02}" if first > 99 else str(n) for n in rest)])
