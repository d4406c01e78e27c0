"""The ONNX project's own cases under every framework: what passed passes, and enough does."""

from __future__ import annotations

import time

import pytest

from tests.conformance.onnx_suite.cases import KINDS, load_cases
from tests.conformance.onnx_suite.categories import DIRECT_FLOAT, category
from tests.conformance.onnx_suite.record import FRAMEWORKS, Results, failures, read_record, run_all

#: The least number of the 1,884 node cases, and of those of float operators, that pass.
LEAST = {"pytorch": (1800, 800), "tensorflow": (1700, 780), "reference": (1870, 800), "onnxruntime": (1700, 750)}

#: All four runs, in seconds, on two cores.
LONGEST_S = 300.0

RENEW = "If that is meant, renew the record: python -m tests.conformance.onnx_suite.record"


@pytest.fixture(scope="module")
def runs() -> tuple[dict[str, Results], float]:
    """The results by framework, and the time that they took."""
    start = time.perf_counter()
    results = run_all()
    return results, time.perf_counter() - start


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_passed_passes(runs: tuple[dict[str, Results], float], framework: str) -> None:
    found, known = failures(runs[0][framework]), read_record()[framework]

    assert {name: reason for name, reason in found.items() if name not in known} == {}, RENEW
    assert sorted(known.keys() - found.keys()) == [], f"These pass now. {RENEW}"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_enough_node_cases_pass(runs: tuple[dict[str, Results], float], framework: str) -> None:
    results = runs[0][framework]["node"]
    floats = [name for name, case in load_cases("node").items() if category(case) == DIRECT_FLOAT]

    assert len(results) >= 1884
    assert len(floats) >= 800
    assert sum(not reason for reason in results.values()) >= LEAST[framework][0]
    assert sum(not results[name] for name in floats) >= LEAST[framework][1]


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "reference"])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_all_small_models_pass(runs: tuple[dict[str, Results], float], framework: str, kind: str) -> None:
    results = runs[0][framework][kind]

    assert results
    assert {name: reason for name, reason in results.items() if reason} == {}


def test_the_runs_are_quick(runs: tuple[dict[str, Results], float]) -> None:
    assert runs[1] < LONGEST_S
