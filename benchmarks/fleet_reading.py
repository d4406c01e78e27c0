"""How long the tables of a cluster take to be read and checked, and how much memory, beside one that checks nothing.

    python -m benchmarks.fleet_reading --jobs 1050501

A trace in the layout of Alibaba's PAI tables is generated into a temporary folder (or read from --folder). It is read
in fresh processes: by `deep500.fleet.read_outcomes`, which checks every line (encoding, number of fields, numbers,
statuses, duplicates, clocks), and by Polars' own reader of CSV, which fills up and cuts lines in silence, with the
same grouping.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deep500.fleet.trace.generating import generate_trace

_OURS = """
from deep500.fleet.reading import read_outcomes
table, report = read_outcomes([folder])
rows = len(table)
"""

_POLARS = """
import polars as pl
from deep500.fleet.readers.pai import _TABLES as tables
def scan(kind):
    names = list(tables[kind])
    return pl.scan_csv(f"{folder}/pai_{kind}_table.csv", has_header=False, new_columns=names, infer_schema_length=10000)
task = ["job_name", "task_name"]
times = (pl.col("start_time").min(), pl.col("end_time").max())
summed = scan("instance").group_by(*task, "machine").agg(pl.len().alias("n"), *times)
summed = summed.group_by(*task).agg(pl.col("n").sum(), *times, pl.len().alias("machines"))
whole = scan("task").join(scan("job").select("job_name", "user"), on="job_name", how="left")
rows = whole.join(summed, on=task, how="left").collect(engine="streaming").height
"""

_PROCESS = """
import json, resource, sys, time
folder = sys.argv[1]
start = time.perf_counter()
{body}
seconds = time.perf_counter() - start
print(json.dumps([rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""


def main() -> int:
    """Measure; exit with 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_050_501)
    parser.add_argument("--folder", help="a trace that is there already")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=15.0, help="most seconds (default 15)")
    parser.add_argument("--memory", type=float, default=1.2, help="most GiB (default 1.2)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary) / "" if arguments.folder else Path(temporary) / "trace"
        if not arguments.folder:
            start = time.perf_counter()
            truth = generate_trace(folder, arguments.jobs)
            took = time.perf_counter() - start
            counted = ", ".join(f"{truth[name]:,} {name}" for name in ("jobs", "tasks", "instances"))
            print(f"generated {counted} in {took:.1f} s\n")
        size = sum(file.stat().st_size for file in folder.glob("*.csv")) / 2**20
        print("| reader | outcomes | MiB | median s | s of each | peak GiB |")
        print("| --- | --- | --- | --- | --- | --- |")
        passed = False
        for name, body in (("read_outcomes", _OURS), ("Polars, nothing checked", _POLARS)):
            runs = [_run(body, folder) for _ in range(arguments.repeats)]
            seconds = sorted(run[1] for run in runs)
            median, peak = seconds[len(seconds) // 2], max(run[2] for run in runs)
            each = " ".join(f"{value:.1f}" for value in seconds)
            print(f"| {name} | {runs[0][0]:,} | {size:.0f} | {median:.1f} | {each} | {peak:.2f} |", flush=True)
            passed = passed or (name == "read_outcomes" and (median > arguments.limit or peak > arguments.memory))
    return int(passed)


def _run(body: str, folder: Path) -> tuple[int, float, float]:
    command = [sys.executable, "-c", _PROCESS.format(body=body), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return rows, seconds, peak


if __name__ == "__main__":
    sys.exit(main())
