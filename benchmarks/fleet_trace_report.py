"""Does a report on a trace as large as the one of seed 004 stay within a minute and two gigabytes?

1,050,501 jobs in the layout of the PAI tables are generated (less than 60 s), then ``deep500 fleet trace report
--classic --page`` tells of them in a fresh process (less than 60 s, less than 2 GB resident at its highest). The
effects that were planted are looked up in the report: of 95 % intervals, most hold.

    python -m benchmarks.fleet_trace_report
    python -m benchmarks.fleet_trace_report --jobs 50000
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from deep500.measure.clock import Stopwatch

JOBS = 1_050_501
SECONDS, GIGABYTES = 60.0, 2.0

#: Prints the seconds of processors and its own highest resident size after the command, since that of children is the
#: highest of all of them.
WATCHED = (
    "import resource, sys; from deep500.cli.main import run_command; code = run_command(sys.argv[1:]); "
    "used = resource.getrusage(resource.RUSAGE_SELF); "
    "print('used', used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr); sys.exit(code)"
)


def run(*arguments: str) -> tuple[str, float, float, float]:
    """Run a command in a fresh process; return its output, its seconds, those of processors, and its gigabytes."""
    watch = Stopwatch()
    done = subprocess.run([sys.executable, "-c", WATCHED, *arguments], capture_output=True, text=True, check=False)
    seconds = watch.elapsed_s()
    if done.returncode:
        raise SystemExit(done.stderr)
    processors, kilobytes = done.stderr.split()[-2:]
    return done.stdout, seconds, float(processors), float(kilobytes) * 1024 / 1e9


def within(report: dict[str, Any], truth: dict[str, Any]) -> tuple[int, int]:
    """Return how many planted effects lie within their intervals, and how many there are."""
    held = []
    for model in report["models"]:
        planted = truth[model["cause"]]["marginal"]
        for effect in model["effects"]:
            name, _, kind = effect["covariate"].partition("=")
            rate = planted["log_rate_of_type"]
            base = effect["unit"].removeprefix("against ")
            wanted = rate[kind] - rate[base] if kind else planted["log_ratio_per_doubling"][name]
            held.append(effect["low"] <= math.exp(wanted) <= effect["high"])
    return sum(held), len(held)


def main() -> int:
    """Generate, report, compare; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        made, page = Path(folder, "made"), Path(folder, "page.html")
        said, generated_s, generated_cpu_s, generated_gb = run(
            "fleet", "trace", "generate", str(made), "--jobs", str(arguments.jobs), "--seed", str(arguments.seed),
            "--json",
        )  # fmt: skip
        truth = json.loads(said)
        size = sum(file.stat().st_size for file in made.iterdir())
        print(
            f"| generate {truth['jobs']:,} jobs, {truth['tasks']:,} tasks, {truth['instances']:,} instances, "
            f"{size / 1e6:.0f} MB | {generated_s:.1f} s ({generated_cpu_s:.1f} s of processors) | "
            f"{generated_gb:.2f} GB | < {SECONDS:.0f} s |",
            flush=True,
        )
        said, reported_s, reported_cpu_s, reported_gb = run(
            "fleet", "trace", "report", str(made), "--classic", "--page", str(page), "--json"
        )
        held, effects = within(json.loads(said), truth)
        print(
            f"| report --classic --page --json | {reported_s:.1f} s ({reported_cpu_s:.1f} s of processors) | "
            f"{reported_gb:.2f} GB | < {SECONDS:.0f} s, "
            f"< {GIGABYTES:.0f} GB | {held} of {effects} planted effects within their 95 % intervals; page "
            f"{page.stat().st_size / 1e6:.1f} MB |"
        )
    fast = generated_s < SECONDS and reported_s < SECONDS and reported_gb < GIGABYTES
    return int(not (fast and held >= 0.75 * effects))


if __name__ == "__main__":
    sys.exit(main())
