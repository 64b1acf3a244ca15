#!/usr/bin/env bash
# Makes the environment that everything runs in, unless it is there already.
#
#   VENV=.venv       where
#   PYTHON=…         from which Python (default: tools/find_python.sh decides)
#   DEVICE=cpu|gpu   with which MXNet (default: tools/find_device.sh decides)
#   UV=uv            which uv, if there is one; without it, venv and pip are used
#
# Two files tell how far an environment came.  .requirements says what was
# installed and is written after the installation, so an interrupted one is made
# anew; .imported is written once MXNet could be loaded.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
uv=$(command -v "${UV:-uv}" || true)
marker=$venv/.made-by-make

# What an environment must have been made from.  A moved checkout needs a new one:
# the scripts of an environment hold its full path.
fingerprint() {
    {
        cat requirements/locks/common.txt requirements/locks/[cg]pu.txt
        cat tools/make_venv.sh tools/quick_imports.py
        # The settings of ruff, pytest and codespell install nothing.
        sed '/^\[tool\.pytest/,$d' pyproject.toml
    } | cksum
    pwd
}

is_current() {
    [ -e "$venv/.requirements" ] && "$venv/bin/python" -c "" 2>/dev/null || return 1
    {
        read -r made_for
        read -r made_from
        made_of=$(cat)
    } <"$venv/.requirements"
    [ "$made_of" = "$(fingerprint)" ] &&
        [ "${DEVICE:-$made_for}" = "$made_for" ] &&
        [ "${PYTHON:-$made_from}" = "$made_from" ]
}

clear_place() {
    if [ -e "$venv" ] && [ ! -e "$marker" ]; then
        echo "$venv exists and was not made by make: move it away, or choose" \
            "another place with VENV=…" >&2
        exit 1
    fi
    rm -rf "$venv"
    mkdir -p "$venv"
    touch "$marker"
}

install_with_uv() {
    local python
    # uv can bring a Python of its own when the machine has none that fits.
    if ! python=$(NEED_VENV=no tools/find_python.sh 2>"$venv/why"); then
        if [ -n "${PYTHON:-}" ]; then
            cat "$venv/why" >&2
            exit 1
        fi
        python='>=3.9,<3.12'
    fi
    "$uv" venv --quiet --allow-existing --python "$python" "$venv" || {
        cat "$venv/why" >&2
        exit 1
    }
    export VIRTUAL_ENV=$venv
    echo "Installing $requirements with uv …"
    "$uv" pip install --quiet --require-hashes -r "$requirements"
    "$uv" pip install --quiet --no-deps --no-build-isolation -e .
}

# A value of pip's settings, in files or the environment; nothing if there is none.
pip_setting() {
    local variable=PIP_${1^^}
    variable=${variable//-/_}
    if [ -n "${!variable:-}" ]; then
        echo "${!variable}"
    else
        $pip config get "global.$1" 2>/dev/null || true
    fi
}

# pip takes a minute for what uv does in some seconds, uv's own installation included.
# It is given the index and the certificates that pip knows.
install_with_own_uv() {
    local index certificates
    # -qq: an index location that cannot be reached is no news for each package anew.
    $pip install -qq --require-hashes --no-deps -r requirements/locks/uv.txt || return 1
    index=$(pip_setting index-url)
    certificates=$(pip_setting cert)
    [ -z "$index" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
    [ -z "$certificates" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$certificates}
    VIRTUAL_ENV=$venv "$venv/bin/uv" pip install --quiet --require-hashes -r "$requirements"
}

install_with_pip() {
    local python pip
    python=$(tools/find_python.sh)
    "$python" -m venv "$venv"
    # PIP_USER in the reader's settings would install outside of the environment.
    pip="env PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 $venv/bin/python -m pip"
    echo "Installing $requirements …"
    if ! install_with_own_uv 2>"$venv/why"; then
        echo "… with pip, as uv could not do it ($(tail -n 1 "$venv/why")): a minute …"
        # The lock is complete.  Without --no-deps pip looks for a hash of
        # "bleach[css]", beside that of bleach.
        $pip install -qq --require-hashes --no-deps -r "$requirements"
    fi
    $pip install -qq --no-deps --no-build-isolation -e .
}

# Chapters measure with what is in benchmarks, which belongs to no wheel.
find_benchmarks() { pwd >"$site/checkout.pth"; }

# MXNet's GPU build looks for CUDA's libraries beside itself. There every process finds
# them: a server, the scheduler and the doctor's probe import no d2l_ext.
link_cuda() {
    local file
    for file in "$site"/nvidia/*/lib/*.so*; do
        case $file in
        *'*'*) ;;      # the CPU set has none
        *nvblas*) ;;   # once loaded, it takes over other libraries' matrix products
        *) ln -sf "../${file#"$site"/}" "$site/mxnet/" ;;
        esac
    done
}

# Every Python of the environment loads it, and what takes long to import takes less.
quicken_imports() {
    cp tools/quick_imports.py "$site"
    echo "import quick_imports" >"$site/quick_imports.pth"
}

check_import() {
    local message
    if message=$("$venv/bin/python" -c \
        "import d2l_ext, quick_imports; quick_imports.keep()" 2>&1); then
        touch "$venv/.imported"
        return
    fi
    case $message in
    *libgomp.so* | *libquadmath.so*)
        echo "MXNet needs two system libraries, of which one is missing." \
            "On Debian and Ubuntu: sudo apt-get install libgomp1 libquadmath0" >&2
        ;;
    *libcuda.so*)
        echo "MXNet for the GPU needs NVIDIA's driver (libcuda.so.1), which is" \
            "missing here. Install it, or use the CPU: make book DEVICE=cpu" >&2
        ;;
    *)
        echo "$message" >&2
        echo "MXNet was installed into $venv, but cannot be imported (see above)." \
            "What is missing: $venv/bin/python -m bookkit.doctor" >&2
        ;;
    esac
    exit 1
}

if ! is_current; then
    device=$(tools/find_device.sh)
    requirements=requirements/locks/$device.txt
    clear_place
    if [ -n "$uv" ]; then install_with_uv; else install_with_pip; fi
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    find_benchmarks
    link_cuda
    quicken_imports
    {
        echo "$device"
        echo "${PYTHON:-}"
        fingerprint
    } >"$venv/.requirements.new"
    mv "$venv/.requirements.new" "$venv/.requirements"
    echo "$("$venv/bin/python" --version) is ready in $venv."
fi
[ -e "$venv/.imported" ] || check_import
