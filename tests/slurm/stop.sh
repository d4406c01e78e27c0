#!/usr/bin/env bash
# Stop what start.sh started: tests/slurm/stop.sh STATE. The folder stays, to be looked at or removed.
set -euo pipefail
if [ $# -ne 1 ]; then
    echo 'usage: tests/slurm/stop.sh STATE' >&2
    exit 2
fi
for file in "$1"/slurmd.pid "$1"/slurmctld.pid "$1"/munge/munged.pid; do
    [ -s "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
done
