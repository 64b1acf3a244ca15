#!/usr/bin/env bash
# Installs what a cluster in a box, and the tests of launchers on it, can make use of:
# packages of Debian and Ubuntu. As root, or by a sudo that asks for no password.
#
# Their daemons are not started: the tests start their own, with their own settings.
# What cannot be had is named, and the tests that need it are skipped with that reason.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin

# A command or file that shows that a group is there, and the packages of the group.
# Grid Engine cannot be configured without the names of ports; with mail, which it
# insists on, comes a program that receives none.
groups=(
    "/etc/services netbase"
    "sshd openssh-server openssh-client"
    "rsync rsync"
    "ip iproute2"
    "iptables iptables"
    "nft nftables"
    "curl curl"
    "orterun openmpi-bin"
    "slurmctld munge slurmctld slurmd slurm-client"
    "sge_qmaster msmtp-mta gridengine-master gridengine-exec gridengine-client"
)

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

missing=()
for group in "${groups[@]}"; do
    sign=${group%% *}
    [ -e "$sign" ] || command -v "$sign" >/dev/null || missing+=("${group#* }")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null || ! as_root true 2>/dev/null; then
    echo "For the tests of clusters, install as root: ${missing[*]}" >&2
    exit 1
fi

echo "Installing for the tests of clusters: ${missing[*]}"
# 101 is the answer that keeps a package's daemon from being started.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
    trap 'as_root rm -f $policy' EXIT
fi
as_root apt-get -qq update
failed=0
for packages in "${missing[@]}"; do
    # shellcheck disable=SC2086  # words of a list
    as_root apt-get -qq install --yes --no-install-recommends $packages >/dev/null || {
        echo "These could not be installed: $packages" >&2
        failed=1
    }
done
exit $failed
