"""The job: starts each framework in a process of its own under the sanitizers, and judges what came of it."""

from __future__ import annotations

import argparse
import sys

from tests.sanitizer.child import TARGETS
from tests.sanitizer.job import Job, run_job


def main() -> int:
    """Run what the arguments name; exit with 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizer", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default all")
    parser.add_argument("--calls", type=int, default=2000, help="generated calls for each (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="another one generates other calls (default 0)")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS", help="for each (default 3600)")
    arguments = parser.parse_args()
    unknown = [target for target in arguments.targets if target not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    targets = arguments.targets or list(TARGETS)
    jobs = [Job(target, arguments.calls, "write", arguments.seed) for target in targets]
    jobs.append(Job(targets[0], 0, "overflow", arguments.seed))
    failed = False
    for job in jobs:
        print(f"{job}: running", flush=True)
        outcome = run_job(job, arguments.timeout)
        print(outcome, flush=True)
        failed = failed or bool(outcome.problems)
    print("FAILED" if failed else "PASSED: no report of a sanitizer but those that were planted")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
