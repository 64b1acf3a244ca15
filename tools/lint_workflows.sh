#!/usr/bin/env bash
# Checks what runs the book elsewhere: the workflows, the container file, the
# definition of the dev container.  The tools have an environment of their own,
# .venv-lint, with the packages and hashes of requirements/locks/lint.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=.venv-lint/bin
if ! cmp --silent requirements/locks/lint.txt .venv-lint/made-of; then
    rm -rf .venv-lint
    python3.11 -m venv .venv-lint
    $bin/python -m pip install --quiet --disable-pip-version-check \
        --require-hashes --no-deps -r requirements/locks/lint.txt
    cp requirements/locks/lint.txt .venv-lint/made-of
fi
export PATH=$PWD/$bin:$PATH # actionlint looks for shellcheck there

actionlint
check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
zizmor --quiet --offline --no-progress --min-severity medium .github
hadolint containers/Containerfile
shellcheck .ci/run tools/*.sh

# The dev container's schema comes with none of the tools.
schema=.venv-lint/devcontainer.schema.json
source=https://raw.githubusercontent.com/devcontainers/spec/c95ffeed1d059abfe9ffbe79762dc2fa4e7c2421/schemas/devContainer.base.schema.json
if [ -e $schema ] || python -c "import sys, urllib.request as u; u.urlretrieve(*sys.argv[1:])" \
    "$source" $schema 2>/dev/null; then
    check-jsonschema --quiet --schemafile $schema .devcontainer/devcontainer.json
else
    echo "devcontainer.json is not checked: its schema cannot be fetched from $source" >&2
fi
echo "Workflows, container file and dev container: no findings."
