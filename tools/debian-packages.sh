#!/usr/bin/env bash
# The Debian packages that the integration tests and `make up` start for real: Slurm with its accounting, and
# MariaDB, PostgreSQL and Prometheus. Installed when we are root on Debian; no service is enabled or started by us.
# Newer Slurm versions are unpacked Debian roots (labs/slurm_lab.py bootstrap), kept in a cache folder.
set -euo pipefail
packages=(slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins munge
          mariadb-server-core mariadb-client-core debootstrap postgresql prometheus)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "packages: not installed, tests that need them will be skipped: ${missing[*]}" >&2
  exit 0
fi

# keep the services of freshly installed packages from starting
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' > $policy; chmod 755 $policy
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
echo "packages: installing ${missing[*]}" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
