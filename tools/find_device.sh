#!/bin/sh
# Prints cpu or gpu: which set of requirements fits this machine.  The reason goes
# to standard error.
#
#   DEVICE=cpu|gpu   take this one
#
# mxnet-cu112 holds machine code for compute capabilities 5.0 to 8.x and no PTX
# that a driver could translate for later ones.  One GPU within these is enough:
# d2l_ext hides the others from MXNet.
set -u

answer() {
    echo "MXNet for the $(echo "$1" | tr '[:lower:]' '[:upper:]'): $2." >&2
    echo "$1"
    exit 0
}

case ${DEVICE:-} in
cpu | gpu) answer "$DEVICE" "DEVICE=$DEVICE says so" ;;
"") ;;
*)
    echo "DEVICE=$DEVICE: write cpu or gpu, or leave it out." >&2
    exit 1
    ;;
esac

command -v nvidia-smi >/dev/null 2>&1 ||
    answer cpu "there is no NVIDIA driver (nvidia-smi is not on the PATH)"
platform=$(uname -sm)
[ "$platform" = "Linux x86_64" ] ||
    answer cpu "its GPU wheel is for Linux on x86-64, and this is $platform"
# A broken driver can make nvidia-smi wait forever.
limit=$(command -v timeout >/dev/null 2>&1 && echo "timeout 30")
# One line a GPU, such as "NVIDIA A10, 8.6".  With drivers before 510, nvidia-smi does
# not know the capability; the driver's library does, and the doctor asks it.
ask_nvidia_smi() {
    $limit nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null
}
ask_driver() {
    here=$(dirname "$0")
    python=$(PYTHON='' NEED_VENV=no "$here/find_python.sh" 2>/dev/null) &&
        (cd "$here/.." && $limit "$python" -m bookkit.doctor.list 2>/dev/null)
}
gpus=$(ask_nvidia_smi || ask_driver) ||
    answer cpu "the driver finds no GPU, or is too old for CUDA 11"
[ -n "$gpus" ] || answer cpu "nvidia-smi lists no GPU"

usable=$(echo "$gpus" | awk -F', *' '$NF ~ /^[5-8]\.[0-9]$/')
in_a_line() { echo "$1" | tr '\n' ';' | sed 's/;$//; s/;/; /g'; }
[ -n "$usable" ] ||
    answer cpu "no compute capability here is within 5.0 to 8.9: $(in_a_line "$gpus")"
answer gpu "$(in_a_line "$usable")"
