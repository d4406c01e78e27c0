"""Running cases and telling what became of each.

python -m tests.conformance.onnx_suite.runner pytorch
python -m tests.conformance.onnx_suite.runner reference --kind node --match "resize" --verbose
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onnx.backend.test.runner import Runner

from tests.conformance.onnx_suite.cases import KINDS, RANDOM, Case, load_cases

__all__ = ["Process", "run_case", "run_cases"]

_MODULE = "tests.conformance.onnx_suite.runner"


def run_case(backend: Any, case: Case) -> str:
    """Run a case; return "" if it passes, and else the reason in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, about the infinities that cases are made of
            prepared = backend.prepare(case.model, "CPU")
            for inputs, expected in case.data:
                outputs = prepared.run(inputs)
                if not set(case.operators).isdisjoint(RANDOM):
                    continue  # tests/conformance/onnx_suite/test_random.py looks at the law
                _compare(expected, list(outputs), case)
    except Exception as error:  # noqa: BLE001 - whatever happens to a case is its result
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text[:300]}"
    return ""


def _compare(expected: Sequence[Any], outputs: Sequence[Any], case: Case) -> None:
    """Compare as the project does; within sequences too, where its own comparison takes no scalars."""
    if len(expected) != len(outputs):
        raise AssertionError(f"There are {len(outputs)} values, and {len(expected)} are expected.")
    for wanted, found in zip(expected, outputs, strict=True):
        if isinstance(wanted, list) and isinstance(found, (list, tuple)):
            _compare(wanted, found, case)
        elif wanted is None or found is None:
            assert wanted is found, f"One of both is absent: {wanted}, {found}"
        else:
            Runner.assert_similar_outputs([wanted], [found], case.rtol, case.atol)


def run_cases(framework: str, kinds: Iterable[str] = KINDS) -> Iterator[tuple[Case, str]]:
    """Run all cases of some kinds; yield each with "" or the reason why it does not pass."""
    backend = importlib.import_module(f"deep500.frameworks.{framework}.backend")
    for kind in kinds:
        for case in load_cases(kind).values():
            yield case, run_case(backend, case)


class Process:
    """A run of all cases in a process of its own: what crashes there ends nothing here."""

    def __init__(self, framework: str) -> None:
        """Start the run."""
        self._file = Path(tempfile.mkstemp(suffix=".json")[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, framework, "--json", str(self._file)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def result(self, timeout_s: float) -> dict[str, dict[str, str]]:
        """Return, for each kind and each name of a case, "" or the reason why it does not pass."""
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
            if self._process.returncode:
                raise RuntimeError(f"The run ended with {self._process.returncode}: {said[-2000:]}")
            found: dict[str, dict[str, str]] = json.loads(self._file.read_text())
            return found
        finally:
            self._process.kill()
            self._file.unlink(missing_ok=True)


def _write(framework: str, file: str) -> None:
    results: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for case, reason in run_cases(framework):
        results[case.kind][case.name] = reason
    Path(file).write_text(json.dumps(results))


def _tell(framework: str, kind: str, chosen: Sequence[Case], *, verbose: bool) -> None:
    backend, watch = importlib.import_module(f"deep500.frameworks.{framework}.backend"), time.perf_counter()
    passed, missing = 0, collections.Counter[str]()
    for case in chosen:
        reason = run_case(backend, case)
        passed += not reason
        if reason:
            missing[",".join(case.operators)] += 1
            if verbose:
                print(f"{case.name}: {reason}", flush=True)
    print(f"{framework} {kind}: {passed} of {len(chosen)}, {time.perf_counter() - watch:.0f} s")
    print("  failing: " + ", ".join(f"{name} {count}" for name, count in missing.most_common(80)))


def main() -> int:
    """Read the command line and run what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--match", default="", help="regular expression of names")
    parser.add_argument("--operator", action="append", help="only cases with this operator")
    parser.add_argument("--verbose", action="store_true", help="show the reason of every failure")
    parser.add_argument("--json", help="run all cases and write the results into this file, instead of showing them")
    arguments = parser.parse_args()
    if arguments.json:
        _write(arguments.framework, arguments.json)
        return 0
    with contextlib.suppress(BrokenPipeError):
        for kind in arguments.kind or KINDS:
            chosen = [
                case
                for name, case in load_cases(kind).items()
                if re.search(arguments.match, name)
                and (not arguments.operator or not set(arguments.operator).isdisjoint(case.operators))
            ]
            _tell(arguments.framework, kind, chosen, verbose=arguments.verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main())
