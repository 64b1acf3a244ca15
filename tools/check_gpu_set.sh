#!/usr/bin/env bash
# Installs the GPU set into a passing environment and checks that it loads and works,
# on a machine without a GPU: 2.4 GB from the package index, some minutes.
#
#   TMPDIR=…   where (default: /tmp); it needs 5 GB
#   KEEP=1     leave the environment there, and say where
#
# The driver's library, libcuda.so.1, is played by a stand-in that is compiled here and
# loaded into the environment's Python.  It holds what MXNet links to, and each of its
# functions answers that there is no device.  Where a driver is installed, it is used.
set -euo pipefail
cd "$(dirname "$0")/.."
unset LD_LIBRARY_PATH

place=$(mktemp -d)
if [ -n "${KEEP:-}" ]; then
    echo "The environment stays in $place."
else
    trap 'rm -rf "$place"' EXIT
fi
export VENV=$place/venv DEVICE=gpu

# Functions of libcuda.so.1 that libmxnet.so links to: nm -D libmxnet.so | grep ' U cu'
FUNCTIONS="cuDeviceGet cuDevicePrimaryCtxRetain cuGetErrorString
    cuGraphKernelNodeGetParams cuGraphNodeGetType cuLaunchKernel cuModuleGetFunction
    cuModuleLoadData cuModuleLoadDataEx cuModuleUnload"

build_stand_in() {
    local name compiler=
    for name in ${CC:-} cc gcc clang; do
        if command -v "$name" >/dev/null; then
            compiler=$name
            break
        fi
    done
    if [ -z "$compiler" ]; then
        echo "The stand-in for NVIDIA's driver needs a C compiler, and there is none:" \
            "install one (on Debian and Ubuntu: sudo apt-get install gcc libc6-dev)," \
            "or name it with CC=…" >&2
        exit 1
    fi
    for name in $FUNCTIONS; do
        echo "int $name(void) { return 100; }  /* CUDA_ERROR_NO_DEVICE */"
    done >"$place/stand_in.c"
    "$compiler" -shared -fPIC -Wl,-soname,libcuda.so.1 \
        -o "$place/libcuda.so.1" "$place/stand_in.c"
}

# Not grep -q, which leaves at its match: ldconfig may then die of SIGPIPE.
has_driver() {
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep 'libcuda\.so\.1 ' >/dev/null
}

has_driver || build_stand_in # before the long download
if tools/make_venv.sh 2>"$place/message"; then
    has_driver || echo "There is no driver, and yet MXNet for the GPU was loaded."
elif ! has_driver && grep -q 'make book DEVICE=cpu' "$place/message"; then
    # Python loads it at its start; a library that is loaded is found by its name.
    "$VENV/bin/python" - "$place" <<'EOF'
import pathlib, sys, sysconfig
line = f"import ctypes; ctypes.CDLL('{sys.argv[1]}/libcuda.so.1')\n"
pathlib.Path(sysconfig.get_paths()["purelib"], "stand_in.pth").write_text(line)
EOF
    echo "ok: without a driver the message says so, and offers DEVICE=cpu"
    tools/make_venv.sh
else
    cat "$place/message" >&2
    exit 1
fi
"$VENV/bin/python" tools/gpu_set_works.py
