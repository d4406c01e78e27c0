"""What Deep500's operators cost over the framework's own functions, at the sizes of DeepBench.

Of each size, the framework's function and the same as an operator (`custom_op` of `custom_op_from_native`) run in turn,
in random order, in one fresh process; the sizes are spread evenly from the least work to the most. What counts is the
median over the sizes, with its exact interval.

    python -m benchmarks.deepbench_overhead --limit 24 --threads 1

Item 3 of the operators' milestone: the median overhead is at most 1 % for each operator and framework.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from deep500.cli.main import run_command
from deep500.measure.results.collection import read_collection
from deep500.measure.results.overheads import Overhead, median_overhead, overhead

OPERATIONS = ("gemm", "convolution")
FRAMEWORKS = ("pytorch", "tensorflow", "reference")


def measured(operation: str, arguments: argparse.Namespace, path: Path) -> dict[str, list[Overhead]]:
    """Measure an operator in all frameworks; return the overheads of its sizes by framework."""
    options = ["--op", operation, "--framework", ",".join(arguments.framework), "--output", str(path), "--resume"]
    for name in ("limit", "threads", "time_limit", "launches", "device"):
        value = getattr(arguments, name)
        if value is not None:
            options += [f"--{name.replace('_', '-')}", str(value)]
    code = run_command(["bench", "deepbench", *options])
    if code not in (0, 1):
        sys.exit(code)
    found: dict[str, list[Overhead]] = {}
    for measurement in read_collection(path).measurements.values():
        found.setdefault(str(measurement.systems[0].factors["framework"]), []).append(overhead(measurement))
    return found


def row(operation: str, framework: str, found: Sequence[Overhead]) -> str:
    """Return a line of the table of results."""
    many = median_overhead(found)
    interval = "none"
    if many.interval is not None:
        interval = f"{(many.interval.low - 1) * 100:+.2f} .. {(many.interval.high - 1) * 100:+.2f}"
    times = sorted(each.base.estimate for each in found)
    return (
        f"| {operation} | {framework} | {len(found)} | {times[0] * 1e3:.3g} .. {times[-1] * 1e3:.3g} | "
        f"{(many.median - 1) * 100:+.2f} | {interval} | {many.slower} / {many.faster} / {many.undecided} |"
    )


def main() -> int:
    """Measure what the arguments name; exit with 1 when a median is over the target, or a framework has no sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", nargs="+", default=list(OPERATIONS), help="operators (default gemm convolution)")
    parser.add_argument("--framework", nargs="+", default=list(FRAMEWORKS))
    parser.add_argument("--device", help="where to run (default cpu)")
    parser.add_argument("--limit", type=int, default=24, help="sizes of each operator (default 24)")
    parser.add_argument("--launches", type=int, default=1, help="fresh processes a size (default 1)")
    parser.add_argument("--threads", type=int, help="threads that libraries may use (default: all)")
    parser.add_argument("--time-limit", type=float, default=10.0, help="longest sampling of a size in s (default 10)")
    parser.add_argument("--target", type=float, default=1.0, help="highest median overhead in %% (default 1)")
    parser.add_argument("--folder", type=Path, help="where the results go, and are gone on with (default: a new one)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="deepbench-"))
    folder.mkdir(parents=True, exist_ok=True)
    lines, is_missed = [], False
    for operation in arguments.op:
        found = measured(operation, arguments, folder / f"{operation}.json")
        for framework in arguments.framework:
            if framework not in found:
                lines.append(f"| {operation} | {framework} | 0 | | | | |")
                is_missed = True
                continue
            lines.append(row(operation, framework, found[framework]))
            is_missed |= (median_overhead(found[framework]).median - 1) * 100 > arguments.target
    print(f"\n{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {folder}\n")
    print("| operator | framework | sizes | native, ms | median overhead, % | interval | slower / faster / undecided |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(lines))
    print(f"\nTarget: at most {arguments.target:g} % in each line. {'Missed.' if is_missed else 'Met.'}")
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
