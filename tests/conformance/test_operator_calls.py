"""Every adapter prepares calls of operators, and knows what else to look at in one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import DeviceError, OperatorError
from deep500.frameworks import FRAMEWORKS, frameworks_offering
from deep500.operators.custom import CustomPythonOp, Finding, NativeOp, Outcome
from deep500.operators.custom.findings import check_agreement, random_gradients, run_check
from tests.conformance.test_custom_operators import ScaledSplit
from tests.unit.operators.sources import cube_sum, failing, mixed

STREAM = np.random.default_rng(0)
X = STREAM.standard_normal((3, 4))
LABELS = np.array([1, 2, 3])

#: What makes an operator, and its inputs.
CASES: dict[str, tuple[Any, list[Any]]] = {
    "C++, two outputs": (cube_sum, [X]),
    "C++, float32": (cube_sum, [X.astype(np.float32)]),
    "C++, bfloat16": (lambda: mixed(), [X.astype(ml_dtypes.bfloat16), LABELS, X.astype(ml_dtypes.bfloat16)]),
    "C++, absent input": (lambda: mixed(), [X, LABELS, None]),
    "C++, no backward": (lambda: failing(""), [X.astype(np.float32)]),
    "python, two outputs": (ScaledSplit, [X, np.array(1.5)]),
}


@pytest.fixture(params=frameworks_offering("prepare_call"))
def adapter(request: pytest.FixtureRequest) -> Any:
    found = FRAMEWORKS.get(request.param)
    if not found.REQUIREMENT.is_installed():
        pytest.skip(f"{request.param} is not installed")
    return found


def findings(adapter: Any, op: Any, cases: Sequence[Any]) -> dict[str, Finding]:
    return {check.name: run_check(check) for check in adapter.custom_op_checks(op, lambda: cases)}


@pytest.mark.parametrize("case", CASES)
def test_calls_and_gradients_are_those_of_numpy(adapter: Any, case: str) -> None:
    make, inputs = CASES[case]
    op = make()
    expected = op.run_forward(inputs)
    call = adapter.prepare_call(op, inputs)

    assert str(call.device) == "cpu"
    call.run()
    call.synchronize()
    assert check_agreement("output", call.outputs(), expected)
    with pytest.raises(OperatorError, match="without gradients"):
        call.gradients()
    if not op.differentiable:
        return
    gradients = random_gradients(expected, np.random.default_rng(1))
    both = adapter.prepare_call(op, inputs, output_gradients=gradients, device="cpu")
    both.run()
    both.run()  # as often as one likes
    assert check_agreement("output", both.outputs(), expected)
    assert check_agreement("gradient", both.gradients(), op.run_backward(gradients, inputs, expected))


def test_the_inputs_are_copied(adapter: Any) -> None:
    given = X.copy()
    call = adapter.prepare_call(cube_sum(), [given])
    before = call.outputs()
    given[...] = 0

    np.testing.assert_array_equal(call.outputs()[0], before[0])


def test_plain_functions_are_called(adapter: Any) -> None:
    call = adapter.prepare_call(lambda x: x * x, [X])

    np.testing.assert_array_equal(call.outputs()[0], X * X)
    assert call.run() is not None


def test_gradients_of_what_has_none(adapter: Any) -> None:
    op = failing("")
    with pytest.raises(OperatorError, match="cannot be differentiated"):
        adapter.prepare_call(op, [np.ones(2, np.float32)], output_gradients=[np.ones(2, np.float32)]).gradients()


def test_devices_that_are_not_there(adapter: Any) -> None:
    for prepare in (
        lambda: adapter.prepare_call(cube_sum(), [X], device="gpu:99"),
        lambda: adapter.custom_op_checks(cube_sum(), lambda: [[X]], device="gpu:99"),
    ):
        with pytest.raises(DeviceError, match="gpu:99"):
            prepare()


@pytest.mark.parametrize("case", ["C++, two outputs", "python, two outputs", "C++, absent input", "C++, no backward"])
def test_checks_pass(adapter: Any, case: str) -> None:
    make, inputs = CASES[case]
    other = [None if x is None else np.concatenate([x, x]) if x.ndim else x for x in inputs]
    op = make()
    if case == "C++, absent input":
        other = [other[0], LABELS, None]
    checks = adapter.custom_op_checks(op, lambda: [inputs, other])
    # Loading a model in another process takes seconds, and one operator has all that there is to load.
    is_chosen = case in ("C++, absent input", "python, two outputs")
    found = {check.name: run_check(check) for check in checks if is_chosen or check.name != "SavedModel"}

    assert found
    for finding in found.values():
        is_saved_python = finding.check == "SavedModel" and not isinstance(op, NativeOp)
        expected = Outcome.NOT_RUN if is_saved_python else Outcome.PASSED
        assert finding.outcome is expected, finding
        assert finding.detail


class Wrong(CustomPythonOp):
    """Squares; its outputs, gradients or promises are wrong as ``how`` says."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how
        self.calls = 0

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [(shapes[0][0], *shapes[0])] if self.how == "infer" else [shapes[0]], [dtypes[0]]

    def forward(self, x: Any) -> Any:
        self.calls += 1
        if self.how == "writes":
            x[...] = 0
        if self.how == "order":
            return np.asarray(np.frombuffer(x.base if x.base is not None else x, x.dtype)[: x.size]).reshape(x.shape)
        if self.how == "memory":
            return x * x * (1 if self.calls < 3 else 1.01)
        if self.how == "throws" and self.calls > 1:
            raise RuntimeError("the pump is broken")
        return x * x

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        if self.how == "traced gradient" and not fwd_inputs[0].flags.writeable:
            return 2.02 * grads[0] * fwd_inputs[0]
        return 2 * grads[0] * fwd_inputs[0]


@pytest.mark.parametrize(
    ("framework", "how", "check", "message"),
    [
        ("reference", "writes", "inputs unchanged", "read-only"),
        ("reference", "memory", "4 threads", "differs from NumPy's"),
        ("reference", "throws", "odd strides", "RuntimeError: the pump is broken"),
        ("reference", "order", "odd strides", "with gaps"),
        ("pytorch", "infer", "torch.library.opcheck", "promised|shape"),
        ("pytorch", "traced gradient", "torch.compile", "gradient 0 differs from NumPy's"),
        ("tensorflow", "traced gradient", "tf.function", "gradient 0 differs from NumPy's"),
        ("tensorflow", "infer", "tf.function", "promised|shape"),
    ],
)
def test_checks_find_what_is_wrong(framework: str, how: str, check: str, message: str) -> None:
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    (wanted,) = [each for each in adapter.custom_op_checks(Wrong(how), lambda: [[X.copy()]]) if each.name == check]
    finding = run_check(wanted)

    assert finding.outcome is Outcome.FAILED, finding
    assert re.search(message, finding.detail), finding.detail


def test_empty_tensors_may_be_refused_but_not_answered_wrongly() -> None:
    class Refuses(Wrong):
        def forward(self, x: Any) -> Any:
            if not x.size:
                raise ValueError("nothing to do")
            return x * x

    class Lies(Wrong):
        def infer(self, shapes: Any, dtypes: Any) -> Any:
            return [shapes[0]], [dtypes[0]]

        def run_forward(self, inputs: Any) -> Any:
            return (inputs[0] * inputs[0] if inputs[0].size else np.ones(3),)

    reference = FRAMEWORKS.get("reference")
    refused = findings(reference, Refuses(), [[X]])["empty tensors"]
    lied = findings(reference, Lies(), [[X]])["empty tensors"]

    assert (refused.outcome, refused.detail) == (Outcome.PASSED, "refused: nothing to do")
    assert lied.outcome is Outcome.FAILED
    assert "infer says" in lied.detail


def test_scalars_have_no_strides() -> None:
    found = findings(FRAMEWORKS.get("reference"), Wrong(), [[np.array(2.0)]])

    assert found["odd strides"].outcome is found["empty tensors"].outcome is Outcome.NOT_RUN
    assert found["4 threads"].outcome is Outcome.PASSED
