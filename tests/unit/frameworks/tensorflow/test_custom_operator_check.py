from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from deep500.frameworks.tensorflow import custom_op_checks  # noqa: E402
from deep500.frameworks.tensorflow import custom_operator_check as module  # noqa: E402
from deep500.operators.custom import Finding, Outcome  # noqa: E402
from deep500.operators.custom.findings import run_check  # noqa: E402
from tests.unit.operators.sources import cube_sum  # noqa: E402

X = np.random.default_rng(0).standard_normal((3, 4))


def saved() -> Finding:
    (check,) = [check for check in custom_op_checks(cube_sum(), lambda: [[X]]) if check.name == "SavedModel"]
    return run_check(check)


def test_a_process_that_fails_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOADING", "raise SystemExit('there is\\nno luck')")
    finding = saved()

    assert finding.outcome is Outcome.FAILED
    assert "ended with 1; it wrote: there is no luck" in finding.detail


def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOADING", "import time; time.sleep(600)")
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.5)
    finding = saved()

    assert finding.outcome is Outcome.FAILED
    assert "did not end within 0.5 s" in finding.detail


@pytest.mark.parametrize(
    ("wrong", "message"), [("", ""), ("output", "output 0 differs"), ("found", "gradient 0 differs")]
)
def test_what_a_loaded_model_computes_is_compared(monkeypatch: pytest.MonkeyPatch, wrong: str, message: str) -> None:
    def load(folder: str, request: str) -> None:
        read = [tf.io.parse_tensor(tf.io.read_file(f"{folder}/gradient{i}"), tf.float64).numpy() for i in range(2)]
        outputs = cube_sum().run_forward([X])
        results: dict[str, Any] = {"output": outputs, "found": cube_sum().run_backward(read, [X], outputs)}
        for name, arrays in results.items():
            factor = 1.01 if name == wrong else 1.0
            module._write(folder, name, [factor * array for array in arrays])

    monkeypatch.setattr(module, "_load_elsewhere", load)
    finding = saved()

    assert finding.outcome is (Outcome.FAILED if wrong else Outcome.PASSED), finding
    assert message in finding.detail
