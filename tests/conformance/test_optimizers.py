"""Every optimizer equals its published formula under every executor, and the frameworks' own where they have it."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import TrainingError
from deep500.frameworks import FRAMEWORKS
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.catalogue import OPTIMIZERS
from deep500.training.optimizer import Optimizer, UpdateRuleOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from tests.conformance.optimizer_networks import batches, network_of_all_ranks
from tests.conformance.optimizer_oracles import CASES, Case, Values, oracle_of
from tests.unit.training.support import LinearExecutor

STEPS = 35

#: Without rounding of gradients, which the two sides compute at points that differ by rounding.
TOLERANCE = 1e-12


def make_executor(framework: str, dtype: str = "float64") -> GraphExecutor:
    """Return an executor of a network with parameters of every rank, or skip."""
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    network = network_of_all_ranks(dtype, convolutions=framework != "onnxruntime")
    executor = importlib.import_module(f"deep500.frameworks.{framework}").from_model(network)
    executor.network.train()
    return executor


def parameters_of(executor: GraphExecutor) -> Values:
    """Return copies of all parameters."""
    names = executor.network.get_params()
    return dict(zip(names, executor.network.fetch_tensors(names), strict=True))


class Evaluation:
    """Loss and gradients of a minibatch at any parameters, by an executor that nothing else uses."""

    def __init__(self, executor: GraphExecutor) -> None:
        self.executor = executor
        self.inputs: dict[str, Any] = {}

    def __call__(self, values: Values) -> tuple[float, Values]:
        network = self.executor.network
        for name, value in values.items():
            network.feed_tensor(name, value)
        outputs = self.executor.inference_and_backprop(self.inputs)
        gradients = {name: network.fetch_tensors([gradient])[0] for name, gradient in network.gradient()}
        return float(self.executor.to_numpy(outputs["loss"])), gradients


def distance(received: Values, expected: Values) -> float:
    """Return the largest difference, relative to the largest element of each parameter."""
    return max(
        float(np.abs(received[name] - value).max() / max(np.abs(value).max(), 1e-3)) for name, value in expected.items()
    )


def check_against_the_formula(kind: Any, case: Case, framework: str, steps: int = STEPS) -> float:
    """Train an optimizer and its oracle side by side; return the largest distance of their parameters."""
    executor = make_executor(framework)
    optimizer: Optimizer = kind(executor, "loss", **case.arguments)
    function, oracle = Evaluation(make_executor(framework)), case.create_oracle()
    expected, start, worst = parameters_of(executor), parameters_of(executor), 0.0
    for inputs in batches(1, size=300, noise=0.5) * steps if case.one_batch else batches(steps):
        expected = parameters_of(executor) if case.one_batch else expected
        optimizer.step(inputs)
        function.inputs = inputs
        expected = oracle(expected, function)
        worst = max(worst, distance(parameters_of(executor), expected))
    assert distance(start, expected) > 1e-4, "the oracle moved nothing, so that nothing was compared"
    assert optimizer.step_count == steps
    assert worst <= TOLERANCE, f"the parameters part from the published formula: {worst:.1e} relative"
    return worst


CASE_NUMBERS = [(name, number) for name in OPTIMIZERS.names() for number in range(len(CASES.get(name, [None])))]


def test_every_optimizer_has_an_oracle() -> None:
    for name in OPTIMIZERS.names():
        oracle_of(name)
    assert set(CASES) <= set(OPTIMIZERS.names()), "there are oracles of optimizers that do not exist"


def test_an_optimizer_without_an_oracle_is_told_what_to_add() -> None:
    with pytest.raises(AssertionError, match=r"new\.py has no oracle\. .* add CASES\['new'\] = \[Case\(formula\)"):
        oracle_of("new")


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
@pytest.mark.parametrize(("optimizer", "number"), CASE_NUMBERS)
def test_parameters_are_those_of_the_published_formula(optimizer: str, number: int, framework: str) -> None:
    check_against_the_formula(OPTIMIZERS.get(optimizer), oracle_of(optimizer)[number], framework)


class BetasConfused(AdamOptimizer):
    """The fault of the published package: the second moment decays with beta1."""

    def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
        return super().update(gradient, parameter, slots, {**scalars, "beta2": scalars["beta1"]})


class BiasLeft(AdamOptimizer):
    """Adam without the correction of the bias."""

    def scalars(self, step: int) -> dict[str, float]:
        return super().scalars(10**9)


class SignSwapped(AdamOptimizer):
    """Adam that climbs."""

    def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
        return super().update(-gradient, parameter, slots, scalars)


@pytest.mark.parametrize("framework", ["reference", "pytorch"])
@pytest.mark.parametrize("mistaken", [BetasConfused, BiasLeft, SignSwapped])
def test_a_planted_fault_is_found(mistaken: type[Optimizer], framework: str) -> None:
    with pytest.raises(AssertionError, match="part from the published formula"):
        check_against_the_formula(mistaken, CASES["adam"][0], framework)


PURE = [name for name in OPTIMIZERS.names() if OPTIMIZERS.get(name).is_pure]


@pytest.mark.parametrize("name", PURE)
def test_every_number_of_a_rule_matters(name: str) -> None:
    """Each number that a rule is given is made wrong in turn, and some case of the optimizer finds it."""
    kind = OPTIMIZERS.get(name)
    numbers = kind(make_executor("reference"), **oracle_of(name)[-1].arguments).scalars(1)

    def finds(case: Case, number: str) -> bool:
        class Mistaken(kind):
            def scalars(self, step: int) -> dict[str, float]:
                values = super().scalars(step)
                return {**values, number: 1.5 * values[number]}

        try:
            check_against_the_formula(Mistaken, case, "reference", steps=12)
        except AssertionError:
            return True
        return False

    # Whether a matrix is orthogonal is no quantity: any number above 0 says yes.
    missed = [n for n in numbers if n != "orthogonal" and not any(finds(case, n) for case in oracle_of(name))]
    assert not missed, f"a wrong value of {', '.join(missed)} changes nothing in the cases of {name}"


HYPERPARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "learning_rate": st.floats(0.0, 0.5),
    "momentum": st.floats(0.0, 0.99),
    "decay": st.floats(0.0, 0.999),
    "beta1": st.floats(0.0, 0.99),
    "beta2": st.floats(0.0, 0.999),
    "epsilon": st.floats(1e-8, 0.1),
    "initial_accumulator": st.floats(0.0, 1.0),
    "trust": st.floats(1e-4, 1.0),
    "adam_ratio": st.floats(0.0, 1.0),
    "iterations": st.integers(1, 6),
    "nesterov": st.booleans(),
    "centered": st.booleans(),
    "bias_correction": st.booleans(),
    "weight_decay": st.floats(0.0, 0.2),
}

SHAPES = {"scalar": (), "vector": (3,), "matrix": (4, 3), "row": (2, 3, 2), "kernel": (2, 2, 3, 1)}


@pytest.mark.parametrize("name", PURE)
@given(data=st.data())
@settings(max_examples=25)
def test_any_hyperparameters(name: str, data: st.DataObject) -> None:
    """The rule, called from outside on arrays, equals its formula for hyperparameters from all of their ranges."""
    case = oracle_of(name)[0]
    accepted = inspect.signature(case.oracle).parameters
    arguments = {argument: data.draw(HYPERPARAMETERS[argument], argument) for argument in accepted}
    optimizer = OPTIMIZERS.get(name)(LinearExecutor(), **arguments)
    oracle = case.oracle(**arguments)
    random = np.random.default_rng(data.draw(st.integers(0, 9), "seed"))
    values = {kind: np.asarray(random.normal(size=shape)) for kind, shape in SHAPES.items()}
    expected = dict(values)
    for _ in range(6):
        gradients = {kind: np.asarray(random.normal(size=shape)) for kind, shape in SHAPES.items()}
        optimizer.new_input()
        values = {kind: optimizer.update_rule(gradients[kind], value, kind) for kind, value in values.items()}
        expected = oracle(expected, lambda _, found=gradients: (0.0, found))
        assert distance(values, expected) <= 1e-11


REFUSED: dict[type, list[Any]] = {
    float: [float("nan"), float("inf"), -0.5, "0.1", None, True, [0.1]],
    bool: [1, None, "yes"],
    int: [0, -1, 1.5, True, None, "2"],
}


@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_bad_hyperparameters_are_refused(name: str) -> None:
    kind = OPTIMIZERS.get(name)
    executor = LinearExecutor()
    for argument, parameter in list(inspect.signature(kind).parameters.items())[2:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for value in REFUSED.get(type(parameter.default), [3, None]):
            with pytest.raises(TrainingError, match=f"{argument} was given as"):
                kind(executor, **{argument: value})
    with pytest.raises(TrainingError, match="learning_rat"):
        kind(executor, learning_rat=0.1)


class Nesterov(UpdateRuleOptimizer):
    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        velocities = vars(self).setdefault("velocities", {})
        velocity = 0.9 * velocities.get(param_name, 0.0) + grad
        velocities[param_name] = velocity
        return old_param - 0.01 * (grad + 0.9 * velocity)


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_a_rule_of_six_lines_works_everywhere(framework: str) -> None:
    def kind(executor: GraphExecutor, loss: str, **arguments: Any) -> Nesterov:
        return Nesterov(executor, loss)

    check_against_the_formula(kind, CASES["momentum"][2], framework)


@pytest.mark.parametrize("framework", ["reference", "pytorch", "tensorflow"])
@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_a_snapshot_goes_on_bit_for_bit(name: str, framework: str) -> None:
    kind, case = OPTIMIZERS.get(name), oracle_of(name)[-1]
    data = batches(7)
    executor, other = make_executor(framework), make_executor(framework)
    optimizer, twin = kind(executor, **case.arguments), kind(other, **case.arguments)
    for inputs in data[:3]:
        optimizer.step(inputs)
    state, values = optimizer.state(), parameters_of(executor)
    twin.step(data[5])  # what it kept before must not matter
    twin.restore(state)
    for parameter, value in values.items():
        other.network.feed_tensor(parameter, value)
    for inputs in data[3:]:
        optimizer.step(inputs)
        twin.step(inputs)
    assert twin.step_count == optimizer.step_count == 7
    for parameter, value in parameters_of(executor).items():
        np.testing.assert_array_equal(parameters_of(other)[parameter], value, err_msg=parameter)


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_matrices_of_a_group_are_given_adamw_by_muon(framework: str) -> None:
    """TensorFlow traces both rules and selects by a number of the step."""
    groups = [("weight", {"orthogonal": 0.0}), ("kernel", {"orthogonal": 0.0, "adam_ratio": 1.0})]
    results = []
    for name in ("reference", framework):
        executor = make_executor(name)
        optimizer = OPTIMIZERS.get("muon")(executor, parameter_groups=groups)
        for inputs in batches(10):
            optimizer.step(inputs)
        results.append(parameters_of(executor))
    assert distance(*results) <= TOLERANCE
