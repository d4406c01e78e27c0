"""An executor against another one, by the names of the published Deep500."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.validation.ladder import validate
from deep500.networks.validation.report import ValidationReport

__all__ = ["test_executor_backprop", "test_executor_inference"]


def test_executor_inference(
    executor: GraphExecutor,
    reference: GraphExecutor,
    inputs: Mapping[str, Any] | None = None,
    *,
    tolerance: float | None = None,
    alone: bool = True,
    raise_on_failure: bool = True,
) -> ValidationReport:
    """Compare what an executor infers with what a reference does; see :func:`~deep500.networks.validation.validate`.

    Args:
        executor: The executor under test. It is compared on the network that it is bound to, with the weights and in
            the mode that it has now; new executors of both kinds run it, so neither is changed.
        reference: An executor of another kind.
        inputs: A value for every input; random ones by default.
        tolerance: As for ``validate``.
        alone: As for ``validate``.
        raise_on_failure: Whether a difference is an error; else the report says it.

    Raises:
        InvalidInputError: One of both is no executor.
        InvalidNetworkError: They differ.
    """
    return _compared(executor, reference, inputs, tolerance, alone, raise_on_failure, differentiates=False)


def test_executor_backprop(
    executor: GraphExecutor,
    reference: GraphExecutor,
    inputs: Mapping[str, Any] | None = None,
    *,
    loss: str = "loss",
    tolerance: float | None = None,
    alone: bool = True,
    raise_on_failure: bool = True,
) -> ValidationReport:
    """Compare what an executor infers, and the gradients of a loss, with what a reference computes.

    Args:
        executor: As for :func:`test_executor_inference`.
        reference: As there.
        inputs: As there.
        loss: Name of the scalar output that is differentiated.
        tolerance: As there.
        alone: As there.
        raise_on_failure: As there.

    Raises:
        InvalidInputError: One of both is no executor.
        InvalidNetworkError: They differ.
    """
    return _compared(executor, reference, inputs, tolerance, alone, raise_on_failure, differentiates=True, loss=loss)


def _compared(
    executor: GraphExecutor,
    reference: GraphExecutor,
    inputs: Mapping[str, Any] | None,
    tolerance: float | None,
    alone: bool,
    raise_on_failure: bool,
    *,
    differentiates: bool,
    loss: str | None = None,
) -> ValidationReport:
    for given in (executor, reference):
        if not isinstance(given, GraphExecutor):
            raise InvalidInputError(f"An executor was given as {shown(given)}; accepted is what from_model returns.")
    factories = [functools.partial(type(one), device=one.device) for one in (reference, executor)]
    network: Network = executor.network.detached()
    report = validate(
        network if differentiates else network.without_losses(),
        factories,
        inputs,
        loss=loss,
        tolerance=tolerance,
        alone=alone,
    )
    if raise_on_failure and not report.passed:
        raise InvalidNetworkError(str(report))
    return report


for _test in (test_executor_inference, test_executor_backprop):
    _test.__test__ = False  # type: ignore[attr-defined]  # pytest takes names that begin so for its own
