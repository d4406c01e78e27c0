"""Damages model files and runs them.

python -m tests.fuzzing --count 5000 --seed 0
python -m tests.fuzzing --count 1 --seed 4711     # one of them again
"""

from __future__ import annotations

import argparse
import sys
import time

from deep500.frameworks import installed_frameworks
from tests.fuzzing.job import Summary, run_job


def main() -> int:
    """Run what the arguments ask for; exit with 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many files (default 5000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first (default 0)")
    parser.add_argument("--every", type=int, default=10, help="every how many, other frameworks run one (default 10)")
    arguments = parser.parse_args()
    others = [name for name in ("pytorch", "onnxruntime") if name in installed_frameworks()]
    summary, start = Summary(), time.monotonic()
    for found in run_job(range(arguments.seed, arguments.seed + arguments.count), others, arguments.every):
        summary.add(found)
        if summary.findings and summary.findings[-1] is found:
            print(found, flush=True)
    for (framework, outcome), count in sorted(summary.counts.items()):
        print(f"{framework:12} {outcome:8} {count}")
    print(f"{len(summary.findings)} findings, {time.monotonic() - start:.0f} s")
    return int(bool(summary.findings))


if __name__ == "__main__":
    sys.exit(main())
