"""Every schedule that is registered equals PyTorch's of the same name, where it has one, and its formula."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.training.catalogue import SCHEDULES
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.schedule import Schedule
from deep500.training.schedules import CosineSchedule
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

torch = pytest.importorskip("torch")  # whose schedules are what ours are compared with

INITIAL, TOTAL = 0.3, 40

#: For each schedule: arguments, the same from PyTorch, and by how many counts PyTorch follows it.
CASES: list[tuple[str, dict[str, Any], Callable[[Any], Any], int]] = [
    ("constant", {}, lambda o: torch.optim.lr_scheduler.ConstantLR(o, factor=1.0), TOTAL),
    ("step_list", {"milestones": [5, 17, 30]}, lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 17, 30]), TOTAL),
    (
        "step_list",
        {"milestones": [1, 2], "factor": 0.7},
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 2], 0.7),
        TOTAL,
    ),
    ("cosine", {}, lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, TOTAL), TOTAL),
    ("cosine", {"final": 0.01}, lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, TOTAL, 0.01), TOTAL),
    (
        "cosine",
        {"restart_every": 4, "restart_factor": 2, "final": 0.02},
        lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 2, 0.02),
        TOTAL,
    ),
    (
        "cosine",
        {"restart_every": 7},
        lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 7),
        TOTAL,
    ),
    (
        "warm_up",
        {"steps": 10, "first_share": 0.25},
        lambda o: torch.optim.lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=10),
        TOTAL,
    ),
    (
        "warm_up",
        {"steps": 9, "schedule": {"name": "exponential", "factor": 0.8}},
        lambda o: torch.optim.lr_scheduler.SequentialLR(
            o,
            [
                torch.optim.lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=9),
                torch.optim.lr_scheduler.ExponentialLR(o, 0.8),
            ],
            [9],
        ),
        TOTAL,
    ),
    ("one_cycle", {}, lambda o: torch.optim.lr_scheduler.OneCycleLR(o, INITIAL, TOTAL), TOTAL - 1),
    (
        "one_cycle",
        {"rising_share": 0.45, "start_divisor": 10, "end_divisor": 50, "shape": "linear"},
        lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, INITIAL, TOTAL, pct_start=0.45, div_factor=10, final_div_factor=50, anneal_strategy="linear"
        ),
        TOTAL - 1,
    ),
    ("polynomial", {}, lambda o: torch.optim.lr_scheduler.PolynomialLR(o, TOTAL), TOTAL),
    ("polynomial", {"power": 2.5}, lambda o: torch.optim.lr_scheduler.PolynomialLR(o, TOTAL, 2.5), TOTAL + 5),
    ("exponential", {"factor": 0.9}, lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9), TOTAL),
    ("exponential", {"factor": 0.5, "every": 6}, lambda o: torch.optim.lr_scheduler.StepLR(o, 6, 0.5), TOTAL),
]


def test_every_schedule_has_a_case() -> None:
    assert sorted({name for name, *_ in CASES}) == SCHEDULES.names()


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, about its own calls of step()
@pytest.mark.parametrize(("name", "arguments", "native", "counts"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_it_equals_pytorchs(name: str, arguments: dict[str, Any], native: Any, counts: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=INITIAL)
    scheduler = native(optimizer)
    expected = []
    for _ in range(counts):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    schedule = SCHEDULES.get(name)(**arguments).completed(INITIAL, TOTAL)

    assert [schedule(count) for count in range(counts)] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("name", "arguments"), [(case[0], case[1]) for case in CASES])
@pytest.mark.parametrize("warm_up", [0, 1, 7])
def test_it_is_finite_and_stays_in_bounds(name: str, arguments: dict[str, Any], warm_up: int) -> None:
    schedule = SCHEDULES.get(name)(**arguments, warm_up_steps=warm_up).completed(INITIAL, TOTAL)
    values = [schedule(count) for count in range(3 * TOTAL)]

    assert all(math.isfinite(value) and 0 <= value <= INITIAL * (1 + 1e-12) for value in values)
    assert all(type(value) is float for value in values)
    np.testing.assert_allclose(np.diff(values[: warm_up + 1]), values[0], rtol=1e-9)  # equal increments


@pytest.mark.parametrize("name", SCHEDULES.names())
def test_it_is_a_schedule_and_completing_it_changes_nothing(name: str) -> None:
    arguments = next(case[1] for case in CASES if case[0] == name)
    schedule = SCHEDULES.get(name)(**arguments)
    completed = schedule.completed(INITIAL, TOTAL)

    assert isinstance(schedule, Schedule)
    assert (schedule.initial, schedule.total) == (None, None)
    assert completed.completed(99.0, 1000) == completed


class Rates(RunnerEvent):
    """Notes what the framework's own optimizer uses."""

    def __init__(self, read: Callable[[Any], float]) -> None:
        self.read = read
        self.rates: list[float] = []

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        self.rates.append(self.read(runner.optimizer))


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
@pytest.mark.parametrize("own", [True, False], ids=["own", "native"])
def test_an_optimizer_trains_with_the_scheduled_rates(framework: str, own: bool) -> None:
    """A rate that is scheduled gives the parameters of one that is set by hand before each step."""
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    found = []
    for is_scheduled in (True, False):
        network = create_model("mlp", shape=(4,), classes=3, hidden=())
        network.append_loss("SoftmaxCrossEntropyLoss")
        executor = adapter.from_model(network)
        optimizer = (AdamOptimizer if own else adapter.AdamOptimizer)(executor, "loss", 0.1)
        sampler = OrderedSampler(data(), 8)
        schedule = CosineSchedule(initial=0.1, total=10)
        if is_scheduled:
            rates = Rates(lambda optimizer: float(optimizer.learning_rate))
            events = [ScheduleEvent("learning_rate", "cosine"), rates]
            Trainer(sampler, None, executor, optimizer).run_loop(2, events)
            assert rates.rates == pytest.approx([schedule(step) for step in range(10)])
        else:
            for step in range(10):
                optimizer.learning_rate = schedule(step)
                optimizer.step(sampler.batch_at(step % 5))
        found.append(executor.network.fetch_tensors(executor.network.get_params()))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def data() -> NumpyDataset:
    random = np.random.default_rng(0)
    return NumpyDataset(random.normal(size=(40, 4)).astype(np.float32), "input", np.arange(40) % 3, "label", 3)
