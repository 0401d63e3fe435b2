#!/usr/bin/env bash
# The Debian packages that the integration tests and `make up` start for real: Slurm with its accounting, and
# MariaDB, PostgreSQL and Prometheus. Installed when we are root on Debian; no service is enabled or started by us.
#
#   debian-packages.sh            the packages
#   debian-packages.sh newer      and newer Slurm versions: unpacked Debian roots (labs/slurm_roots.py), kept in a cache
#
# What cannot be had is said and costs no more than the tests that need it: they skip, with the reason.
set -euo pipefail
packages=(slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins munge
          mariadb-server-core mariadb-client-core debootstrap postgresql prometheus)
suites=(trixie sid)
python=${PYTHON:-.venv/bin/python}

say() { echo "packages: $*" >&2; }

install_packages() {
  local missing=() package policy=/usr/sbin/policy-rc.d
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "not installed, what needs them will be skipped: ${missing[*]}"
    return
  fi
  # keep the services of freshly installed packages from starting
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' > $policy; chmod 755 $policy
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  say "installing ${missing[*]}"
  apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    say "apt-get could not install them all; what needs them will be skipped"
}

unpack() { # SUITE FOLDER
  local log; log=$(mktemp)
  say "unpacking Slurm of Debian $1 into $2 (a minute, once)"
  PYTHONPATH=src:. timeout -k 10 600 "$python" -m labs.slurm_lab bootstrap --suite "$1" >"$log" 2>&1 ||
    { tail -n 3 "$log" >&2; say "no Slurm of $1; its tests will be skipped"; }
  rm -f "$log"
}

unpack_newer() { # all at once: half of the time goes into waiting for the mirror
  local folder=${NODEWORTHY_SLURM_ROOTS:-/var/cache/nodeworthy/slurm} suite
  [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || return 0
  for suite in "${suites[@]}"; do
    [ -x "$folder/$suite/usr/sbin/slurmctld" ] || unpack "$suite" "$folder" &
  done
  wait
}

install_packages
if [ "${1:-}" = newer ]; then unpack_newer; fi
