#!/usr/bin/env bash
# Writes constraints.txt: one version of every package, for Python 3.9 to 3.11.
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

# The requirement files name constraints.txt themselves; without that line they
# are free to be resolved anew.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for file in requirements.txt requirements-cpu.txt requirements-gpu.txt; do
    grep -v '^-c ' "$file" >"$copy/$file"
done
if [ -f constraints.txt ]; then cp constraints.txt "$copy"; fi

(cd "$copy" && "$uv" pip compile --quiet --universal --python-version 3.9 \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
    --output-file constraints.txt "$@" requirements-cpu.txt requirements-gpu.txt)
{
    echo "# Written by \`make lock\`.  Change requirements*.txt and run that again."
    grep -v '^#' "$copy/constraints.txt"
} >constraints.txt.new
mv constraints.txt.new constraints.txt
