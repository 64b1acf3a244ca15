#!/usr/bin/env bash
# Writes the locks: one version of every package, for Python 3.9 to 3.11, with the
# hashes of its files.  What make_venv.sh installs is what stands there.
#
#   requirements/locks/common.txt   what requirements/cpu.txt and requirements/gpu.txt share
#   requirements/locks/cpu.txt      that, and MXNet for CPUs
#   requirements/locks/gpu.txt      that, MXNet for GPUs and its CUDA libraries
#   requirements/locks/uv.txt       what installs them
#   requirements/locks/lint.txt     the tools of `make lint-workflows`, in an environment of theirs
#
#   tools/lock.sh             keep the versions that still fit
#   tools/lock.sh --upgrade   take the newest ones (any option of uv goes here)
set -euo pipefail
cd "$(dirname "$0")/.."

uv=${UV:-uv}
command -v "$uv" >/dev/null || {
    echo "make lock needs uv (https://docs.astral.sh/uv/); none is on the PATH." >&2
    exit 1
}
head="# Written by \`make lock\`.  Change the requirements and run that again."

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# resolve PYTHON OUTPUT REQUIREMENTS…, from that Python on; what is in OUTPUT already
# is kept, where it fits.
options=("$@")
resolve() {
    local python=$1 output=$2
    shift 2
    "$uv" pip compile --quiet --universal --python-version "$python" \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
        --no-header --output-file "$output" "${options[@]}" "$@"
}

# Both sets are resolved together, so that they agree, and then taken apart.
sed -s '/^-r /d' requirements/locks/common.txt requirements/locks/cpu.txt requirements/locks/gpu.txt >"$new/all" 2>/dev/null || true
resolve 3.9 "$new/all" requirements/cpu.txt requirements/gpu.txt
resolve 3.9 "$new/uv" requirements/uv.txt
cp requirements/locks/lint.txt "$new/lint" 2>/dev/null || true
resolve 3.11 "$new/lint" requirements/lint.txt

mkdir -p requirements/locks
awk -v head="$head" -v folder=requirements/locks '
    # The packages that a set names itself are its own; the others are shared.
    FILENAME != ARGV[ARGC - 1] {
        if ($0 ~ /^[a-z]/) { sub(/==.*/, ""); set[$0] = FILENAME ~ /gpu/ ? "gpu" : "cpu" }
        next
    }
    /^[a-z]/ {
        name = $0
        sub(/==.*/, "", name)
        to = name in set ? set[name] : "common"
    }
    !/^#/ { text[to] = text[to] $0 "\n" }
    END {
        printf "%s\n%s", head, text["common"] >folder "/common.txt"
        for (name in set) sets[set[name]]
        for (to in sets)
            printf "%s\n-r common.txt\n%s", head, text[to] >folder "/" to ".txt"
    }' requirements/cpu.txt requirements/gpu.txt "$new/all"
for name in uv lint; do
    {
        echo "$head"
        grep -v '^#' "$new/$name"
    } >requirements/locks/$name.txt
done
