#!/usr/bin/env bash
# setup.sh VENV: a virtual environment with everything in requirements.lock and Nodeworthy itself, editable.
# Needs only python3 (3.11 or newer). On Debian the venv module is a package of its own.
set -euo pipefail
venv=$1

python=
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
  [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "setup: Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    else
      echo "setup: this Python has no venv module; install the package python3-venv" >&2; exit 1
    fi
  fi
  "$python" -m venv --clear "$venv"
fi

# uv installs in a fifth of pip's time; pip alone does as well where uv has no wheel
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
uv_pin=$(awk '/^uv==/ {print $1}' requirements.lock)
if [ -n "$uv_pin" ] && pip install --require-hashes -r <(awk '/^uv==/ {on=1} on {print} on && !/\\$/ {exit}' requirements.lock); then
  "$venv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" --require-hashes -r requirements.lock
else
  pip install --require-hashes -r requirements.lock
fi
pip install --no-deps --no-build-isolation --editable .
"$venv/bin/nodeworthy" --version
