#!/usr/bin/env bash
# Start a SLURM cluster of one node, for tests: tests/slurm/start.sh STATE
#
# STATE is the folder of everything that it keeps; stop it with stop.sh STATE. Needs root, and Debian's or Ubuntu's
# packages, which are installed where apt-get can. Then: export SLURM_CONF=STATE/slurm.conf
# Exit code: 0 when the node is idle, 3 when this machine cannot (no root, no packages; said), 1 when it failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 1 ]; then
    echo 'usage: tests/slurm/start.sh STATE' >&2
    exit 2
fi
cannot() {
    echo "SLURM was not started: $1" >&2
    exit 3
}

[ "$(id -u)" -eq 0 ] || cannot 'this is not root, which its daemons need.'
needed=(munged slurmctld slurmd sbatch squeue)
missing() { for tool in "${needed[@]}"; do command -v "$tool" >/dev/null || return 0; done; return 1; }
if missing; then
    command -v apt-get >/dev/null || cannot 'its packages are missing, and there is no apt-get to install them.'
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends munge slurmctld slurmd slurm-client; } \
        >/dev/null 2>&1 </dev/null || cannot 'apt-get could not install munge, slurmctld, slurmd and slurm-client.'
    ! missing || cannot 'the packages do not bring what is needed.'
fi

mkdir -p "$1"
state=$(cd "$1" && pwd)
mkdir -p "$state"/{log,ctl,spool,munge}
chmod 755 "$state" "$state/munge"
export SLURM_CONF=$state/slurm.conf
host=$(hostname -s)
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
fill() {
    sed -e "s|@HOST@|$host|g" -e "s|@STATE@|$state|g" -e "s|@PORT@|$(port)|g" -e "s|@NODE_PORT@|$(port)|g" \
        "$here/$1.in" >"$state/$1"
}
fill slurm.conf
fill gres.conf
# GPUs are device files that do nothing; SLURM refuses regular files.
for gpu in 0 1; do
    [ -e "$state/fakegpu$gpu" ] || mknod "$state/fakegpu$gpu" c 1 3 || cannot 'it may make no devices.'
done

# A munged of its own: neither the key nor the socket of the machine's own are touched.
[ -e "$state/munge/key" ] || (umask 077 && head -c 64 /dev/urandom >"$state/munge/key")
munged --force --key-file="$state/munge/key" --socket="$state/munge/socket" --pid-file="$state/munge/munged.pid" \
    --log-file="$state/log/munged.log" --seed-file="$state/munge/seed" 2>>"$state/log/munged.err"
slurmctld -c 2>>"$state/log/slurmctld.err"
slurmd -c 2>>"$state/log/slurmd.err"
for _ in $(seq 100); do
    if [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; then
        echo "SLURM runs; use it with: export SLURM_CONF=$SLURM_CONF"
        exit 0
    fi
    sleep 0.2
done
echo "SLURM's node did not become idle in 20 s; see $state/log." >&2
tail -n 20 "$state"/log/* >&2
"$here/stop.sh" "$state"
exit 1
