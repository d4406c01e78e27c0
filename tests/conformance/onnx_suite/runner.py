"""Running cases and telling what became of each.

python -m tests.conformance.onnx_suite.runner pytorch
python -m tests.conformance.onnx_suite.runner reference --kind node --match "resize" --verbose
"""

from __future__ import annotations

import argparse
import collections
import importlib
import re
import sys
import time
from typing import Any

from onnx.backend.test.runner import Runner

from tests.conformance.onnx_suite.cases import KINDS, RANDOM, Case, load_cases


def run_case(backend: Any, case: Case) -> str:
    """Run a case; return "" if it passes, and else the reason in one line."""
    try:
        prepared = backend.prepare(case.model, "CPU")
        for inputs, expected in case.data:
            outputs = prepared.run(inputs)
            if not set(case.operators).isdisjoint(RANDOM):
                continue  # tests/conformance/onnx_suite/test_random.py looks at the law
            Runner.assert_similar_outputs(expected, list(outputs), case.rtol, case.atol)
    except Exception as error:  # noqa: BLE001 - whatever happens to a case is its result
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text[:300]}"
    return ""


def find_backend(framework: str) -> Any:
    """Return the backend of an adapter."""
    return importlib.import_module(f"deep500.frameworks.{framework}.backend")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--match", default="", help="regular expression of names")
    parser.add_argument("--operator", action="append", help="only cases with this operator")
    parser.add_argument("--verbose", action="store_true", help="show the reason of every failure")
    arguments = parser.parse_args()
    backend, watch = find_backend(arguments.framework), time.perf_counter()
    for kind in arguments.kind or KINDS:
        passed, missing = 0, collections.Counter()
        chosen = [
            case
            for name, case in load_cases(kind).items()
            if re.search(arguments.match, name)
            and (not arguments.operator or not set(arguments.operator).isdisjoint(case.operators))
        ]
        for case in chosen:
            reason = run_case(backend, case)
            passed += not reason
            if reason:
                missing[",".join(case.operators)] += 1
                if arguments.verbose:
                    print(f"{case.name}: {reason}", flush=True)
        print(f"{arguments.framework} {kind}: {passed} of {len(chosen)}, {time.perf_counter() - watch:.0f} s so far")
        print("  failing: " + ", ".join(f"{name} {count}" for name, count in missing.most_common(80)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
