#!/bin/sh
# Prints cpu or gpu: which set of requirements fits this machine.  The reason goes
# to standard error.
#
#   DEVICE=cpu|gpu   take this one
#
# mxnet-cu112 holds machine code for compute capabilities 5.0 to 8.x and no PTX
# that a driver could translate for later ones.
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
# A broken driver can make nvidia-smi wait for ever.
limit=$(command -v timeout >/dev/null 2>&1 && echo "timeout 30")
gpus=$($limit nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null) ||
    answer cpu "nvidia-smi finds no GPU, or its driver is too old to be asked"
[ -n "$gpus" ] || answer cpu "nvidia-smi lists no GPU"

# One line a GPU, such as "NVIDIA A10, 8.6".
unusable=$(echo "$gpus" | awk -F', *' '$NF !~ /^[5-8]\.[0-9]$/ { print; exit }')
[ -z "$unusable" ] ||
    answer cpu "this GPU's compute capability is not within 5.0 to 8.9: $unusable"
answer gpu "$(echo "$gpus" | tr '\n' ';' | sed 's/;$//; s/;/; /g')"
