"""What all optimizers share, under every framework: options, checkpoints, both forms of a rule."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, TrainingError
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.networks.micro_batched_executor import MicroBatchedExecutor
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.parameter_groups import Multiplier

OPTIMIZERS = {"gradient_descent": GradientDescent, "momentum": MomentumOptimizer, "adam": AdamOptimizer}
RATE = 0.05
SHAPE = (2, 6, 6)


def decaying(gradient: Any, parameter: Any) -> Any:
    return gradient + 0.01 * parameter


OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "modifier": {"gradient_modifier": decaying},
    "clip_value": {"clip_value": 0.02},
    "clip_norm": {"clip_norm": 0.1},
    "decay": {"weight_decay": 0.3},
    "accumulation": {"accumulation_steps": 2},
    "groups": {
        "weight_decay": 0.1,
        "parameter_groups": [("*.bias", {"weight_decay": 0.0}), ("*", {"learning_rate": Multiplier(0.5)})],
    },
    "all": {
        "gradient_modifier": decaying,
        "clip_value": 0.5,
        "clip_norm": 0.2,
        "weight_decay": 0.1,
        "accumulation_steps": 3,
        "parameter_groups": [(lambda name, kind: len(kind.shape) == 1, {"weight_decay": 0.0, "learning_rate": 0.2})],
        "ema_decay": 0.8,
    },
}


def framework(name: str) -> Any:
    if not FRAMEWORKS.get(name).REQUIREMENT.is_installed():
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(f"deep500.frameworks.{name}")


@pytest.fixture(params=FRAMEWORKS.names())
def adapter(request: pytest.FixtureRequest) -> Any:
    return framework(request.param)


def executor_of(adapter: Any, **arguments: Any) -> Any:
    """Return an executor of a small convolutional network in float64; ONNX Runtime has no such convolutions."""
    if adapter.__name__.endswith("onnxruntime"):
        network = create_model("mlp", shape=SHAPE, hidden=(5,), classes=4, dtype="float64")
    else:
        network = create_model("lenet", shape=(2, 8, 8), classes=4, dtype="float64")
    network.append_loss("SoftmaxCrossEntropyLoss")
    return adapter.from_model(network, **arguments)


def batch(executor: Any, seed: int, size: int = 6) -> dict[str, np.ndarray]:
    stream = np.random.default_rng(seed)
    shape = executor.network.inputs["input"].shape[1:]
    return {"input": stream.standard_normal((size, *shape)), "label": stream.integers(0, 4, size)}


def parameters(executor: Any) -> dict[str, np.ndarray]:
    names = executor.network.get_params()
    return dict(zip(names, executor.network.fetch_tensors(names), strict=True))


class Oracle:
    """The published formulas, in NumPy, on gradients of another executor."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, options
        self.kept: dict[str, Any] = {}
        self.sums: list[dict[str, np.ndarray]] = []
        self.average: dict[str, np.ndarray] = {}
        self.step = 0

    def values_of(self, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
        rate, decay = RATE, self.options.get("weight_decay", 0.0)
        for selection, values in self.options.get("parameter_groups", ()):
            chosen = len(shape) == 1 if callable(selection) else selection == "*" or name.endswith(selection[1:])
            if chosen:
                rate_value = values.get("learning_rate", rate)
                return (getattr(rate_value, "factor", None) and rate * rate_value.factor) or rate_value, values.get(
                    "weight_decay", decay
                )
        return rate, decay

    def __call__(self, old: dict[str, np.ndarray], gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        count = self.options.get("accumulation_steps", 1)
        self.average = self.average or dict(old)
        self.sums.append(gradients)
        if len(self.sums) < count:
            return old
        mean = {name: sum(one[name] for one in self.sums) / count for name in gradients}
        self.sums = []
        if "gradient_modifier" in self.options:
            mean = {name: g + 0.01 * old[name] for name, g in mean.items()}
        if "clip_value" in self.options:
            mean = {
                name: np.clip(g, -self.options["clip_value"], self.options["clip_value"]) for name, g in mean.items()
            }
        norm = np.sqrt(sum(np.sum(g**2) for g in mean.values()))
        if "clip_norm" in self.options and norm > self.options["clip_norm"]:
            mean = {name: g * self.options["clip_norm"] / norm for name, g in mean.items()}
        self.step += 1
        new = {name: self.update(name, mean[name], old[name]) for name in old}
        decay = self.options.get("ema_decay", 0.0)
        self.average = {name: decay * self.average[name] + (1 - decay) * new[name] for name in new}
        return new

    def update(self, name: str, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        rate, decay = self.values_of(name, w.shape)
        w = w - rate * decay * w
        if self.kind == "gradient_descent":
            return w - rate * g
        if self.kind == "momentum":
            self.kept[name] = 0.9 * self.kept.get(name, 0.0) + g
            return w - rate * self.kept[name]
        m, v = self.kept.get(name, (0.0, 0.0))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        self.kept[name] = m, v
        t = self.step
        return w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_are_those_of_the_formulas(adapter: Any, kind: str, options: str) -> None:
    executor, twin = executor_of(adapter), executor_of(adapter)
    twin.network.train()
    optimizer = OPTIMIZERS[kind](executor, learning_rate=RATE, **OPTIONS[options])
    oracle = Oracle(kind, OPTIONS[options])
    for seed in range(6):
        optimizer.step(batch(executor, seed))
        twin.inference_and_backprop(batch(executor, seed))
        pairs = twin.network.gradient()
        gradients = {name: twin.network.fetch_tensors([gradient])[0] for name, gradient in pairs}
        for name, value in oracle(parameters(twin), gradients).items():
            twin.network.feed_tensor(name, value)
    assert optimizer.step_count == 6 // OPTIONS[options].get("accumulation_steps", 1)
    # Adam divides by roots of squares near 0, where what the forward pass rounds differently is magnified.
    for name, value in parameters(executor).items():
        np.testing.assert_allclose(value, parameters(twin)[name], rtol=0, atol=1e-9, err_msg=name)
    if "ema_decay" in OPTIONS[options]:
        before = parameters(executor)
        with optimizer.averaged():
            for name, value in parameters(executor).items():
                np.testing.assert_allclose(value, oracle.average[name], rtol=0, atol=1e-9, err_msg=name)
            with pytest.raises(TrainingError, match="average stands in"):
                optimizer.step(batch(executor, 0))
        for name, value in parameters(executor).items():
            np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("steps", [3, 4])
@pytest.mark.parametrize("options", ["none", "all"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("native", [False, True], ids=["own", "native"])
def test_resumed_training_is_the_same_bit_for_bit(
    adapter: Any, kind: str, options: str, steps: int, native: bool
) -> None:
    """Also in the midst of an accumulation: three minibatches make an update, and one of them is done after 4."""
    arguments = dict(OPTIONS[options])
    if native and adapter.__name__.endswith("tensorflow") and options == "all":
        arguments["parameter_groups"] = [("*.bias", {"weight_decay": 0.0})]  # Keras has one learning rate
    own = OPTIMIZERS[kind]
    made = getattr(adapter, own.__name__) if native else own

    def make() -> Any:
        return made(executor_of(adapter), learning_rate=RATE, **arguments)

    def train(optimizer: Any, seeds: range) -> None:
        for seed in seeds:
            optimizer.step(batch(optimizer.executor, seed))

    whole, first, second = make(), make(), make()
    train(whole, range(8))
    train(first, range(steps))
    first.learning_rate = RATE / 2
    first.learning_rate = RATE
    train(second, range(1))  # something else before
    state = first.state()
    kept = parameters(first.executor)
    train(first, range(steps, 8))  # a snapshot shares no memory
    for name, value in kept.items():
        second.network.feed_tensor(name, value)
    second.restore(state)
    train(second, range(steps, 8))
    for name, value in parameters(whole.executor).items():
        np.testing.assert_array_equal(parameters(second.executor)[name], value, err_msg=name)
    assert second.step_count == whole.step_count
    if "ema_decay" in arguments:
        for name, value in whole.updates.averages().items():
            np.testing.assert_array_equal(second.updates.averages()[name], value, err_msg=name)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_accumulated_minibatches_equal_the_large_one(adapter: Any, kind: str) -> None:
    parts, whole = (
        OPTIMIZERS[kind](executor_of(adapter), learning_rate=RATE, accumulation_steps=count) for count in (3, 1)
    )
    for seed in range(3):
        large = batch(parts.executor, seed, 12)
        whole.step(large)
        for i in range(3):
            parts.step({name: value[4 * i : 4 * i + 4] for name, value in large.items()})
    for name, value in parameters(parts.executor).items():
        np.testing.assert_allclose(value, parameters(whole.executor)[name], rtol=0, atol=1e-10, err_msg=name)


class Simple(UpdateRuleOptimizer):
    """What a user writes."""

    hyperparameter_names = ("rate",)

    def __init__(self, executor: Any, rate: float = 0.1, **options: Any) -> None:
        super().__init__(executor, **options)
        self.rate = rate

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        return old_param - self.rate * grad


class Remembering(UpdateRuleOptimizer):
    """What a user writes who keeps things."""

    def __init__(self, executor: Any) -> None:
        super().__init__(executor)
        self.velocities: dict[str, Any] = {}
        self.seen = {"steps": 0, "shapes": ()}

    def new_input(self) -> None:
        self.seen["steps"] += 1

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        self.velocities[param_name] = 0.9 * self.velocities.get(param_name, 0.0) + grad
        return old_param - (0.1 / self.seen["steps"]) * self.velocities[param_name]


def descend(executor: Any, steps: int, rate: Callable[[int], float]) -> dict[str, np.ndarray]:
    """Return the parameters after gradient descent by hand."""
    executor.network.train()
    for step in range(steps):
        executor.inference_and_backprop(batch(executor, step))
        for name, gradient in executor.network.gradient():
            value, slope = executor.network.fetch_tensors([name, gradient])
            executor.network.feed_tensor(name, value - rate(step) * slope)
    return parameters(executor)


def test_a_users_rule_and_its_schedule(adapter: Any) -> None:
    optimizer = Simple(executor_of(adapter))
    for step in range(4):
        optimizer.rate = 0.1 / (step + 1)
        optimizer.step(batch(optimizer.executor, step))
    expected = descend(executor_of(adapter), 4, lambda step: 0.1 / (step + 1))
    for name, value in parameters(optimizer.executor).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12, err_msg=name)
    if hasattr(optimizer.executor, "trace_count"):
        assert optimizer.executor.trace_count() == 1


def test_a_users_rule_that_remembers_is_called_each_time_and_resumed(adapter: Any) -> None:
    whole, first, second = (Remembering(executor_of(adapter)) for _ in range(3))
    for step in range(4):
        whole.step(batch(whole.executor, step))
    for step in range(2):
        first.step(batch(first.executor, step))
    for name, value in parameters(first.executor).items():
        second.network.feed_tensor(name, value)
    second.restore(first.state())
    for step in range(2, 4):
        second.step(batch(second.executor, step))
    assert whole.seen["steps"] == second.seen["steps"] == 4
    for name, value in parameters(whole.executor).items():
        np.testing.assert_array_equal(parameters(second.executor)[name], value, err_msg=name)
        assert tuple(whole.velocities[name].shape) == value.shape  # as ONNX declares it


def test_attributes_that_cannot_be_saved_are_named(adapter: Any) -> None:
    optimizer = Simple(executor_of(adapter))
    optimizer.helper = object()
    with pytest.raises(CheckpointError, match="attribute helper is a object, which cannot be saved"):
        optimizer.state()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_three_steps_called_from_outside_equal_a_step(adapter: Any, kind: str) -> None:
    """The published way: fetch, update, feed; also in turns with steps."""
    optimizer, by_name = (OPTIMIZERS[kind](executor_of(adapter), learning_rate=RATE) for _ in range(2))
    for step in range(5):
        optimizer.step(batch(optimizer.executor, step))
        if step == 3:
            by_name.step(batch(by_name.executor, step))
            continue
        by_name.new_input()
        by_name.executor.inference_and_backprop(batch(by_name.executor, step))
        for name, gradient in by_name.network.gradient():
            value, slope = by_name.network.fetch_tensors([name, gradient])
            by_name.network.feed_tensor(name, by_name.update_rule(slope, value, name))
    for name, value in parameters(optimizer.executor).items():
        np.testing.assert_allclose(parameters(by_name.executor)[name], value, rtol=0, atol=1e-10, err_msg=name)


class Whole(UpdateRuleOptimizer):
    """A pure rule that needs whole parameters in the layout of ONNX."""

    hyperparameter_names = ("learning_rate",)
    slots = ("last",)
    learning_rate = 0.05

    def scalars(self, step: int) -> dict[str, float]:
        return {"rate": self.learning_rate}

    def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
        functions = self.functions
        rows = functions.reshape(gradient, (parameter.shape[0], -1))
        scale = functions.norm(parameter) / (
            functions.norm(functions.matmul(functions.transpose(rows, (1, 0)), rows)) + 1.0
        )
        last = 0.5 * slots["last"] + scale * gradient
        return parameter - scalars["rate"] * last, {"last": last}


def test_a_pure_rule_for_whole_parameters_agrees_with_the_reference_and_resumes(adapter: Any) -> None:
    optimizer, resumed = (Whole(executor_of(adapter), weight_decay=0.1) for _ in range(2))
    name = "reference"
    expected = optimizer
    if not adapter.__name__.endswith("onnxruntime"):
        expected = Whole(executor_of(framework(name)), weight_decay=0.1)
    for step in range(4):
        if expected is not optimizer:
            expected.step(batch(expected.executor, step))
        optimizer.step(batch(optimizer.executor, step))
        if step == 1:
            for key, value in parameters(optimizer.executor).items():
                resumed.network.feed_tensor(key, value)
            resumed.restore(optimizer.state())
        if step > 1:
            resumed.step(batch(resumed.executor, step))
    for key, value in parameters(optimizer.executor).items():
        np.testing.assert_array_equal(parameters(resumed.executor)[key], value)
        np.testing.assert_allclose(value, parameters(expected.executor)[key], rtol=0, atol=1e-10, err_msg=key)


def test_options_act_on_the_gradient_of_the_whole_micro_batched_batch(adapter: Any) -> None:
    whole, parts = (AdamOptimizer(e, learning_rate=RATE, **OPTIONS["all"]) for e in (
        executor_of(adapter), MicroBatchedExecutor(executor_of(adapter), 2)
    ))  # fmt: skip
    for step in range(6):
        whole.step(batch(whole.executor, step))
        parts.step(batch(whole.executor, step))
    for name, value in parameters(whole.executor).items():
        np.testing.assert_allclose(parameters(parts.executor)[name], value, rtol=0, atol=1e-9, err_msg=name)


class Wrong(UpdateRuleOptimizer):
    """A pure rule that returns what it should not."""

    slots = ("kept",)
    elementwise = True
    fault = ""

    def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
        if self.fault == "name":
            return parameter - gradient, {"other": gradient}
        if self.fault == "shape":
            return parameter - gradient, {"kept": gradient[:1][..., :1]}
        return self.functions.reshape(parameter - gradient, (-1, 1)), {"kept": gradient}


@pytest.mark.parametrize(
    ("fault", "message"),
    [("name", r"slots \(other\)"), ("shape", "returned slot 'kept' of shape"), ("value", "The update rule returned")],
)
def test_a_pure_rule_that_returns_nonsense_is_named(adapter: Any, fault: str, message: str) -> None:
    optimizer = Wrong(executor_of(adapter))
    optimizer.fault = fault
    with pytest.raises(TrainingError, match=message):
        optimizer.step(batch(optimizer.executor, 0))


def test_checkpoints_of_others_are_refused_and_nothing_is_changed(adapter: Any) -> None:
    optimizer = MomentumOptimizer(executor_of(adapter), learning_rate=RATE)
    optimizer.step(batch(optimizer.executor, 0))
    state, before = optimizer.state(), optimizer.state()
    name = optimizer.network.get_params()[0]
    other = AdamOptimizer(executor_of(adapter))
    with pytest.raises(CheckpointError, match="is of the optimizer 'MomentumOptimizer'"):
        other.restore(state)
    slots = state["updates"]["slots"]
    for broken, message in (
        ({"nothing": slots[name]}, "has the parameter 'nothing'"),
        ({name: {"velocity": slots[name]["velocity"][:1]}}, "float64"),
        ({name: {"velocity": slots[name]["velocity"].astype(np.float32)}}, "float32"),
        ({name: {"speed": slots[name]["velocity"]}}, "speed"),
    ):
        with pytest.raises(CheckpointError, match=message):
            optimizer.restore({**state, "updates": {**state["updates"], "slots": broken}})
    after = optimizer.state()
    assert after["step_count"] == before["step_count"] == 1
    for key, values in before["updates"]["slots"].items():
        np.testing.assert_array_equal(after["updates"]["slots"][key]["velocity"], values["velocity"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_norm": 0}, "clip_norm was given as 0"),
        ({"clip_value": -1.0}, "clip_value"),
        ({"accumulation_steps": 0}, "accumulation_steps"),
        ({"accumulation_steps": 1.5}, "accumulation_steps"),
        ({"ema_decay": 1.0}, "ema_decay"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"wieght_decay": 0.1}, "Did you mean 'weight_decay'"),
        ({"parameter_groups": [("nothing.*", {})]}, "selects no parameter"),
        ({"parameter_groups": [("*", {"momentun": 0.1})]}, "Did you mean 'momentum'"),
        ({"parameter_groups": [("*", {"momentum": "0.1"})]}, "momentum was given as '0.1'"),
        ({"parameter_groups": [("*", {"clip_norm": 1.0})]}, "no hyperparameter"),
        ({"parameter_groups": ["*"]}, "accepted are pairs"),
    ],
)
def test_options_that_are_not_accepted(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        MomentumOptimizer(executor_of(framework("reference")), **options)


def test_no_average_without_a_decay() -> None:
    optimizer = GradientDescent(executor_of(framework("reference")))
    with pytest.raises(TrainingError, match="Make it with ema_decay"), optimizer.averaged():
        pass
