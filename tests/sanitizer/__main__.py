"""The job: starts each framework in a process of its own under the sanitizers, and judges what came of it."""

from __future__ import annotations

import argparse
import sys

from tests.sanitizer.child import TARGETS
from tests.sanitizer.job import Job, Outcome, run_job, run_tests

#: The tests of the operators that come along, as a target.
TESTS_TARGET = "native_ops"


def told(outcome: Outcome) -> Outcome:
    """Print an outcome, and return it."""
    print(outcome, flush=True)
    return outcome


def main() -> int:
    """Run what the arguments name; exit with 1 when something is wrong."""
    known = [*TARGETS, TESTS_TARGET]
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizer", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(known)}; default all")
    parser.add_argument("--calls", type=int, default=2000, help="generated calls for each (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="another one generates other calls (default 0)")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS", help="for each (default 3600)")
    arguments = parser.parse_args()
    unknown = [target for target in arguments.targets if target not in known]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(known)}")
    targets = arguments.targets or known
    outcomes = []
    for target in targets:
        if target == TESTS_TARGET:
            outcomes.append(told(run_tests(arguments.timeout)))
            continue
        outcomes.append(told(run_job(Job(target, arguments.calls, "write", arguments.seed), arguments.timeout)))
        outcomes.append(told(run_job(Job(target, 0, "overflow"), arguments.timeout)))
    failed = any(outcome.problems for outcome in outcomes)
    print("FAILED" if failed else "PASSED: no report of a sanitizer but those that were planted")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
