"""An optimizer against another one, or against its formula in NumPy, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.measure.metric_test import MetricValue, measure_metrics
from deep500.measure.tolerance import unit_roundoff
from deep500.training.optimizer import Optimizer
from deep500.training.optimizers._evaluation import states_kept
from deep500.training.training_event import OptimizerEvent
from deep500.training.validation._batches import batches_of
from deep500.training.validation.report import OptimizerReport, ParameterCheck, settled

__all__ = ["test_optimizer"]

Values = dict[str, NDArray[Any]]

#: What is allowed of a distance, relative to the reference's norm: what a hundred steps of equal formulas differ by.
_ALLOWED = {"float64": 1e-12, "float32": 1e-5}


def test_optimizer(
    optimizer: Optimizer,
    inputs: Any,
    reference: Any = None,
    metrics: Iterable[Any] = (),
    events: Sequence[OptimizerEvent] = (),
    *,
    steps: int = 1,
    expected_params: Any = None,
    tolerance: float | None = None,
    raise_on_failure: bool = True,
) -> OptimizerReport:
    r"""Take steps with an optimizer and compare the parameters after each with a reference.

    After each step :math:`\|p - r\|_2 \le t \|r\|_2` must hold for each parameter, with the tolerance :math:`t` of
    1e-12 in float64, 1e-5 in float32, else sixteen roundings. Executors and optimizers are afterwards as they were.

    Args:
        optimizer: The optimizer, on its executor.
        inputs: A sampler, a data set, a minibatch (a dictionary, or a pair of dictionaries of inputs and labels), or a
            list of minibatches.
        reference: Another optimizer, on another executor of the same network, which starts from the same parameters;
            or a function ``rule(gradient, parameter, name)`` of float64 arrays that returns the next parameter, the
            formula itself, given the gradients that the optimizer's executor computes; or the parameters that the last
            step must give, a list in the network's order or a dictionary. ``None`` only checks that they stay finite
            and move.
        metrics: Such as ``[d5.L2Error(), d5.WallclockTime()]``, of the parameters after the last step.
        events: Told of each step.
        steps: Number of steps.
        expected_params: Another name of ``reference``, as in the published Deep500.
        tolerance: What is allowed instead.
        raise_on_failure: Whether what is wrong is an error; else the report says it.

    Raises:
        TrainingError: An argument is not accepted, or a parameter is wrong.
    """
    if not isinstance(optimizer, Optimizer):
        raise TrainingError(f"test_optimizer was given {shown(optimizer)}; accepted is an optimizer.")
    if reference is not None and expected_params is not None:
        raise TrainingError("A reference and expected_params were given; accepted is one of both.")
    batches = batches_of(inputs, steps)
    check = _Check(optimizer, reference if expected_params is None else expected_params, tolerance, list(events))
    kept = [(part, part.state()) for part in check.parts]
    try:
        check.run(batches)
        values = _measured(check, list(metrics), batches, kept)
    finally:
        for part, state in kept:
            part.restore(state)
    report = check.report(values)
    return settled(report, raise_on_failure)


test_optimizer.__test__ = False  # type: ignore[attr-defined]


class _Check:
    """One optimizer beside its reference."""

    def __init__(
        self, optimizer: Optimizer, reference: Any, tolerance: float | None, events: list[OptimizerEvent]
    ) -> None:
        self.optimizer, self.reference, self.tolerance, self.events = optimizer, reference, tolerance, events
        self.values = _parameters(optimizer)
        self.start = dict(self.values)
        self.expected: Values = {}
        self.losses: list[float] = []
        self.failures: list[str] = []
        self.first_wrong: int | None = None
        self.worst: dict[str, ParameterCheck] = {}
        self.parts: list[Any] = [optimizer.executor, optimizer]
        self.text = ""
        self.rule: Callable[[Any, Any, str], Any] | None = None
        self._prepare()

    def report(self, metrics: Sequence[MetricValue]) -> OptimizerReport:
        return OptimizerReport(
            type(self.optimizer).__name__,
            failures=tuple(self.failures),
            metrics=tuple(metrics),
            measured=tuple(entry.value for entry in metrics),
            reference=self.text,
            losses=tuple(self.losses),
            first_wrong_step=self.first_wrong,
            parameters=tuple(self.worst.values()),
        )

    def _prepare(self) -> None:
        reference = self.reference
        if isinstance(reference, Optimizer):
            if list(reference.network.parameters) != list(self.values):
                raise TrainingError(
                    f"The reference trains the parameters {', '.join(reference.network.parameters)}; accepted is an "
                    f"optimizer of the same network: {', '.join(self.values)}."
                )
            self.parts += [reference.executor, reference]
            self.text = f"{type(reference).__name__} under {reference.executor.framework}"
        elif callable(reference):
            self.rule = reference
            self.text = getattr(reference, "__name__", type(reference).__name__)
        elif reference is not None:
            self.given = _named(reference, list(self.values))
            self.text = "the given parameters"

    def run(self, batches: Sequence[Mapping[str, Any]]) -> None:
        reference = self.reference
        if isinstance(reference, Optimizer):
            states = {name: _fetch(self.optimizer, name) for name in self.optimizer.network.states}
            for name, value in (self.values | states).items():
                reference.network.feed_tensor(name, value)
        self.expected = {name: value.astype(np.float64) for name, value in self.values.items()}
        for step, batch in enumerate(batches, 1):
            gradients = {} if self.rule is None else self._gradients(batch)
            self._step(batch)
            if isinstance(reference, Optimizer):
                reference.step(batch)
                self.expected = {name: value.astype(np.float64) for name, value in _parameters(reference).items()}
            elif self.rule is not None:
                self._apply_rule(gradients)
            elif reference is not None and step == len(batches):
                self.expected = self.given
            else:
                self._check_finite(step)
                continue
            for name, value in self.values.items():
                self._compare(step, name, value)
        if reference is None:
            self.expected = {}
            still = [name for name in self.values if np.array_equal(self.values[name], self.start[name])]
            if len(still) == len(self.values):
                self.failures.append(f"{type(self.optimizer).__name__} changed no parameter.")
        for check in self.worst.values():
            if not check.agrees:
                self.failures.append(
                    f"Parameter {check.name!r} is {check.distance:.3g} away from {self.text} after step {check.step}; "
                    f"allowed is {check.allowed:.3g} of {check.norm:.3g} (first wrong: step {self.first_wrong})."
                )

    def _step(self, batch: Mapping[str, Any]) -> None:
        optimizer = self.optimizer
        for event in self.events:
            event.before_optimizer_step(optimizer.executor, batch)
        outputs = optimizer.step(batch)
        loss = outputs[optimizer.loss]
        for event in self.events:
            event.after_optimizer_step(optimizer.executor, outputs, loss)
        self.losses.append(float(optimizer.executor.to_numpy(loss)))
        self.values = _parameters(optimizer)

    def _gradients(self, batch: Mapping[str, Any]) -> Values:
        """Return the gradients of a minibatch in float64; states and random streams stay as they are."""
        executor, network = self.optimizer.executor, self.optimizer.network
        random = executor.random_state()
        with states_kept(executor):
            executor.inference_and_backprop(batch, self.optimizer.loss)
            pairs = network.gradient(self.optimizer.loss)
            values = network.fetch_tensors([gradient for _, gradient in pairs])
        executor.restore_random(random)
        return {name: value.astype(np.float64) for (name, _), value in zip(pairs, values, strict=True)}

    def _apply_rule(self, gradients: Values) -> None:
        assert self.rule is not None
        for name, gradient in gradients.items():
            following = np.asarray(self.rule(gradient, self.expected[name].copy(), name), np.float64)
            if following.shape != self.expected[name].shape:
                raise TrainingError(
                    f"The reference returned shape {following.shape} for parameter {name!r}; it must return "
                    f"{self.expected[name].shape}."
                )
            self.expected[name] = following

    def _compare(self, step: int, name: str, value: NDArray[Any]) -> None:
        expected = self.expected[name]
        difference = value.astype(np.float64) - expected
        norm = float(np.linalg.norm(expected))
        dtype = value.dtype.name
        share = _ALLOWED.get(dtype, 16 * unit_roundoff(dtype)) if self.tolerance is None else self.tolerance
        check = ParameterCheck(
            name,
            step,
            float(np.linalg.norm(difference)),
            float(np.abs(difference).max(initial=0.0)),
            norm,
            share * norm,
        )
        if not check.agrees and self.first_wrong is None:
            self.first_wrong = step
        before = self.worst.get(name)
        if before is None or _badness(check) > _badness(before):
            self.worst[name] = check

    def _check_finite(self, step: int) -> None:
        bad = [name for name, value in self.values.items() if not np.isfinite(value.astype(np.float64)).all()]
        if bad and self.first_wrong is None:
            self.first_wrong = step
            self.failures.append(f"After step {step}, {', '.join(map(repr, bad))} is not finite.")


def _measured(
    check: _Check, metrics: list[Any], batches: Sequence[Any], kept: Sequence[tuple[Any, Any]]
) -> list[MetricValue]:
    """Take the same steps for the metrics."""
    optimizer = check.optimizer

    def again() -> Values:
        for part, state in kept[:2]:  # the executor and its optimizer
            part.restore(state)
        for batch in batches:
            optimizer.step(batch)
        return _parameters(optimizer)

    return measure_metrics(
        metrics,
        again,
        inputs=batches,
        reference_outputs=check.expected or None,
        synchronize=optimizer.executor.synchronize,
    )


def _badness(check: ParameterCheck) -> float:
    share = check.distance / check.allowed if check.allowed else check.distance
    return math.inf if math.isnan(share) else share


def _fetch(optimizer: Optimizer, name: str) -> NDArray[Any]:
    value: NDArray[Any] = optimizer.network.fetch_tensors([name])[0]
    return value


def _parameters(optimizer: Optimizer) -> Values:
    return {name: _fetch(optimizer, name) for name in optimizer.network.get_params()}


def _named(values: Any, names: list[str]) -> Values:
    listed = dict(values) if isinstance(values, Mapping) else dict(zip(names, values, strict=False))
    is_complete = set(listed) == set(names) and (isinstance(values, Mapping) or len(list(values)) == len(names))
    if not is_complete:
        raise TrainingError(
            f"The expected parameters are {shown(values)}; accepted are an optimizer, a function of (gradient, "
            f"parameter, name), and an array for each of {', '.join(names)}."
        )
    return {name: np.asarray(listed[name], np.float64) for name in names}
