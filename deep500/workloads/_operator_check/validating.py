"""What is looked at: the operator by itself, and as an operator of each framework."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of
from deep500.operators.custom import Check, CustomOp, NativeOp, NotRunError
from deep500.operators.custom.findings import check_agreement, random_gradients
from deep500.operators.operator import OptionalArray
from deep500.operators.validation import test_op_forward, test_op_gradient
from deep500.recipe.resolve import load_framework
from deep500.workloads._operator_check.functions import FrameworkFunction, framework_function
from deep500.workloads._operator_check.inputs import dtypes_of, example_inputs

__all__ = ["Subject", "framework_checks", "operator_checks"]

Inputs = Sequence[OptionalArray]


@dataclass(frozen=True)
class Subject:
    """What is checked, and on what.

    Attributes:
        op: The operator.
        given: What the user says of its inputs.
        seed: Seed of the values.
    """

    op: CustomOp
    given: Sequence[TensorDescriptor] | None = None
    seed: int = 0

    @property
    def dtypes(self) -> list[str]:
        """The dtypes in which it is checked."""
        return dtypes_of(self.op, self.given)

    def inputs(self, dtype: str) -> list[OptionalArray]:
        """Return small inputs of a dtype.

        Raises:
            NotRunError: The operator has no code for the processor.
            OperatorError: There are no inputs.
        """
        if isinstance(self.op, NativeOp) and "cpu" not in self.op.library.description.devices:
            raise NotRunError("it has no code for the processor to compare with")
        found = example_inputs(self.op, dtype, given=self.given, seed=self.seed)
        assert found is not None  # small ones exist always
        return found

    def cases(self) -> list[list[OptionalArray]]:
        """Return inputs of the first dtype: small ones, and others of other sizes where there are any."""
        dtype = self.dtypes[0]
        other = example_inputs(self.op, dtype, "other", given=self.given, seed=self.seed)
        return [self.inputs(dtype), *([] if other is None else [other])]


def operator_checks(subject: Subject) -> list[Check]:
    """Return what is to be looked at before any framework is: values and derivatives, in every dtype."""
    found = []
    for dtype in subject.dtypes:
        found.append(Check(f"forward {dtype}", functools.partial(_check_forward, subject, dtype)))
    for dtype in subject.dtypes:
        found.append(Check(f"gradient {dtype}", functools.partial(_check_gradient, subject, dtype)))
    return found


def framework_checks(
    subject: Subject, framework: str, *, device: str | None = None, against: str | None = None
) -> list[Check]:
    """Return what is to be looked at in a framework; the operator is not run before the checks are.

    Args:
        subject: The operator.
        framework: The framework.
        device: Where to run; by default on the processor.
        against: The function of the framework to compare with; by default the one that the operator names.

    Raises:
        Deep500Error: The framework is missing, or does not have the device.
    """
    adapter = load_framework(framework)
    found = [
        Check("calls", functools.partial(_check_calls, subject, adapter, device)),
        Check("gradients", functools.partial(_check_gradients, subject, adapter, device)),
    ]
    found += adapter.custom_op_checks(subject.op, subject.cases, device=device)
    function = framework_function(subject.op, framework, against)
    if function is not None:
        run = functools.partial(_check_function, subject, adapter, device, function)
        found.append(Check(f"against {function.name}", run))
    return found


def _check_forward(subject: Subject, dtype: str) -> str:
    """Compare the outputs with those that the operator itself computes in wider floats."""
    inputs = subject.inputs(dtype)
    report = test_op_forward(subject.op, inputs)
    errors = [found.comparison.relative_error for found in report.outputs if found.comparison is not None]
    return f"largest error {max(errors, default=0.0):.2g}, against {report.reference}"


def _check_gradient(subject: Subject, dtype: str) -> str:
    """Compare the gradients with numerical derivatives."""
    op = subject.op
    if not op.differentiable:
        raise NotRunError("the operator has no backward")
    inputs = subject.inputs(dtype)
    if not any(x is not None and x.dtype.name.startswith(("float", "bfloat")) for x in inputs):
        raise NotRunError("no input is of floats")
    report = test_op_gradient(op, inputs, seed=subject.seed)
    worst = report.worst
    error = "no derivative to compare" if worst is None else f"largest error {worst.relative_error:.2g}"
    kinks = f", {report.excluded} at kinks left out" if report.excluded else ""
    return f"{error}, {report.method} in {report.dtype}{kinks}"


def _check_calls(subject: Subject, adapter: Any, device: str | None) -> str:
    """Compare what the framework's operator returns with what NumPy's does, in every dtype."""

    def look(dtype: str) -> str:
        inputs = subject.inputs(dtype)
        found = adapter.prepare_call(subject.op, inputs, device=device).outputs()
        return check_agreement("output", found, subject.op.run_forward(inputs))

    return _in_every_dtype(subject, look)


def _check_gradients(subject: Subject, adapter: Any, device: str | None) -> str:
    """Compare the gradients that the framework computes with those of the operator's backward, in every dtype."""
    if not subject.op.differentiable:
        raise NotRunError("the operator has no backward")

    def look(dtype: str) -> str:
        inputs = subject.inputs(dtype)
        outputs = subject.op.run_forward(inputs)
        gradients = _gradients(subject, outputs)
        call = adapter.prepare_call(subject.op, inputs, output_gradients=gradients, device=device)
        return check_agreement("gradient", call.gradients(), subject.op.run_backward(gradients, inputs, outputs))

    return _in_every_dtype(subject, look)


def _check_function(subject: Subject, adapter: Any, device: str | None, function: FrameworkFunction) -> str:
    """Compare the outputs with those of a function of the framework."""
    inputs = subject.inputs(subject.dtypes[0])
    found = adapter.prepare_call(function.call, inputs, device=device).outputs()
    return check_agreement("output", found, subject.op.run_forward(inputs))


def _in_every_dtype(subject: Subject, look: Any) -> str:
    said: dict[str, list[str]] = {}
    for dtype in subject.dtypes:
        try:
            said.setdefault(look(dtype), []).append(dtype)
        except (OperatorError, ArithmeticError) as error:
            raise OperatorError(f"{dtype}: {message_of(error)}") from error
    return "; ".join(f"{', '.join(dtypes)} {text}" for text, dtypes in said.items())


def _gradients(subject: Subject, outputs: Sequence[Any]) -> list[OptionalArray]:
    return random_gradients(outputs, np.random.default_rng(subject.seed))
