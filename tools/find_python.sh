#!/bin/sh
# Prints the path of a Python that can run the book, or says what to install.
#
#   PYTHON=…       look at this one only
#   NEED_VENV=no   one without the module venv will do (uv makes the environment)
#
# A candidate is believed only after it ran: the shims of pyenv exist for every
# version that anybody ever installed, and most of them only print an error.
set -u

probe='
import platform, sys
try:
    import ensurepip, venv
    module = "venv"
except ImportError:
    module = "no-venv"
print("%d.%d" % sys.version_info[:2], module,
      platform.system() + "-" + platform.machine(), sys.executable)'
seen=""

note() { seen="$seen
  $1"; }

# Prints the path and returns 0 if candidate $1 will do; else notes the reason.
try() {
    command -v "$1" >/dev/null 2>&1 || return 1
    if ! answer=$("$1" -I -c "$probe" 2>/dev/null) || [ -z "$answer" ]; then
        note "$1: is on the PATH, but does not run"
        return 1
    fi
    read -r version module machine path <<EOF
$answer
EOF
    case $version in
    3.9 | 3.10 | 3.11) ;;
    *)
        note "$1: is Python $version"
        return 1
        ;;
    esac
    case $machine in
    Linux-x86_64 | Linux-aarch64 | Darwin-x86_64) ;;
    *)
        note "$1: is built for $machine; MXNet 1.9.1 has wheels for Linux on x86-64 \
and ARM, and for macOS on Intel"
        return 1
        ;;
    esac
    if [ "$module" = no-venv ] && [ "${NEED_VENV:-yes}" = yes ]; then
        note "$1: lacks the module venv; on Debian and Ubuntu: \
sudo apt-get install python$version-venv"
        return 1
    fi
    echo "$path"
}

if [ -n "${PYTHON:-}" ]; then
    if try "$PYTHON"; then exit 0; fi
    echo "PYTHON=$PYTHON cannot run this book:${seen:- no such program}" >&2
else
    for name in python3.11 python3.10 python3.9 python3 python; do
        if try "$name"; then exit 0; fi
    done
    echo "No Python on the PATH can run this book.${seen:-
  There is none at all.}" >&2
fi
cat >&2 <<'EOF'

It needs Python 3.11, 3.10 or 3.9.  Python 3.12 and later will not do: d2l 1.0.3
pins NumPy 1.23.5, which has no wheel for them.  Do one of these:

  Debian 12          sudo apt-get install python3.11-venv
  Ubuntu 22.04       sudo apt-get install python3.10-venv
  any system         install uv, which brings a Python 3.11 of its own:
                     https://docs.astral.sh/uv/getting-started/installation/
  have one already   name it: make book PYTHON=/path/to/python3.11

and run the same command again.
EOF
exit 1
