from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import RecipeError, UnknownNameError
from deep500.core.event import Event
from deep500.recipe.keys import KEYS
from deep500.recipe.recipe import Recipe
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.events.progress_bar import TerminalBarEvent
from deep500.training.metrics.test_accuracy import TestAccuracy
from tests.unit.recipe.support import Constant, run_python, small_parts

METRICS = [(TestAccuracy(), 50.0)]


class Uncopyable(Event):
    def __init__(self) -> None:
        self.lock = threading.Lock()


def recipe(**changes: Any) -> Recipe:
    return Recipe(*small_parts(**changes), METRICS)


def test_seed_has_a_default_and_is_mutable() -> None:
    assert recipe().mutable["seed"] == 0
    assert recipe()["seed"] == 0


def test_fixed_seed_stays_fixed() -> None:
    fixed, mutable = small_parts()

    made = Recipe({**fixed, "seed": 7}, mutable, METRICS)

    assert (made["seed"], "seed" in made.mutable) == (7, False)


@pytest.mark.parametrize("key", ["epochs", "model_kwargs"])
def test_key_in_both_parts_is_refused(key: str) -> None:
    fixed, mutable = small_parts()

    with pytest.raises(RecipeError, match=rf"'{key}' is in FIXED and in MUTABLE"):
        Recipe(fixed, {**mutable, key: copy.copy(fixed[key])}, METRICS)


def test_all_keys_in_both_parts_are_named() -> None:
    fixed, mutable = small_parts()

    with pytest.raises(RecipeError, match="'epochs', 'batch_size' are in"):
        Recipe({**fixed, "batch_size": 8}, {"epochs": 2, **mutable}, METRICS)


def test_unknown_key_is_refused_with_a_near_miss() -> None:
    with pytest.raises(RecipeError, match=r"MUTABLE has the unknown key 'optimiser'\. Did you mean 'optimizer'\?"):
        recipe(optimiser="momentum")


def test_key_that_is_no_text_is_refused() -> None:
    fixed, mutable = small_parts()

    with pytest.raises(RecipeError, match="FIXED has the unknown key 3"):
        Recipe({**fixed, 3: 4}, mutable, METRICS)


@pytest.mark.parametrize("key", ["batch_size", "executor", "optimizer"])
def test_missing_key_is_named(key: str) -> None:
    with pytest.raises(RecipeError, match=rf"has no '{key}' in FIXED or MUTABLE\. {KEYS[key].meaning}: "):
        recipe(**{key: None})


def test_parts_of_wrong_type_are_refused() -> None:
    fixed, mutable = small_parts()

    with pytest.raises(RecipeError, match="FIXED is a list"):
        Recipe([("epochs", 3)], mutable, METRICS)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="MUTABLE is a NoneType"):
        Recipe(fixed, None, METRICS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"a": 1}, "METRICS is a dict"),
        ((), "METRICS is empty"),
        ([TestAccuracy()], r"METRICS\[0\] is TestAccuracy"),
        ([(TestAccuracy(),)], r"METRICS\[0\] is tuple"),
        (
            [(TestAccuracy(), 1.0), (TestAccuracy, 1.0)],
            r"METRICS\[1\] has the class TestAccuracy; write TestAccuracy\(\)",
        ),
        ([(BatchHashEvent(), 1.0)], "is not a metric"),
        ([(TestAccuracy(), "97")], "acceptable value '97'"),
        ([(TestAccuracy(), True)], "acceptable value True"),
        ([(TestAccuracy(), float("nan"))], "acceptable value nan"),
    ],
)
def test_wrong_metrics_are_refused(metrics: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        Recipe(*small_parts(), metrics)

    assert "\n" not in str(caught.value)


def test_metric_by_name() -> None:
    made = Recipe(*small_parts(), [("test_accuracy", 50)])

    assert isinstance(made.metrics[0][0], TestAccuracy)
    assert made.metrics[0][1] == 50.0


def test_unknown_metric_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'test_accuracy'"):
        Recipe(*small_parts(), [("tests_accuracy", 50)])


def test_acceptable_value_may_be_none() -> None:
    assert Recipe(*small_parts(), [(Constant(1.0), None)]).metrics[0][1] is None


def test_what_was_passed_is_copied() -> None:
    event = TerminalBarEvent()
    fixed, mutable = small_parts(events=[event])
    made = Recipe(fixed, mutable, METRICS)
    made.fixed["model_kwargs"]["hidden"] = (1,)
    made.mutable["events"].append(1)

    assert fixed["model_kwargs"] == {"hidden": (6,)}
    assert mutable["events"] == [event]
    assert made.mutable["events"][0] is not event


def test_event_that_cannot_be_copied_is_refused_with_a_way_out() -> None:
    with pytest.raises(RecipeError, match=r"MUTABLE\['events'\] has a Uncopyable that cannot be copied.*its class"):
        recipe(events=[Uncopyable()])


def test_class_of_such_an_event_is_accepted() -> None:
    assert recipe(events=[Uncopyable])["events"] == [Uncopyable]


def test_replaced_changes_mutable_keys_only() -> None:
    made = recipe()

    assert made.replaced(batch_size=4)["batch_size"] == 4
    assert made["batch_size"] == 8
    with pytest.raises(RecipeError, match="'epochs' is FIXED"):
        made.replaced(epochs=3)


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 9},
        {"executor": "pytorch"},
        {"optimizer": "adam"},
        {"optimizer_kwargs": {"learning_rate": 0.1, "momentum": 0.6}},
        {"train_sampler": "ordered"},
        {"events": ["batch_hash"]},
        {"seed": 1},
        {"train_sampler_kwargs": {"seed": 3}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_change_changes_the_configuration_hash(change: dict[str, Any]) -> None:
    assert recipe(**change).configuration_hash != recipe().configuration_hash
    assert recipe(**change).configuration_hash == recipe(**change).configuration_hash


def test_seed_that_is_the_default_is_the_same_configuration() -> None:
    assert recipe(seed=0).configuration_hash == recipe().configuration_hash


def test_description_holds_both_parts() -> None:
    described = recipe().description

    assert described["mutable"]["optimizer_kwargs"] == {"learning_rate": 0.1, "momentum": 0.5}
    assert described["fixed"]["epochs"] == 2
    json.dumps(described, allow_nan=False)


SCRIPT = """
import deep500 as d5
from deep500.recipe import Recipe
recipe = Recipe(
    {"model": "mlp", "dataset": "digits", "epochs": 1, "train_sampler": d5.ShuffleSampler},
    {"batch_size": 8, "executor": "reference", "executor_kwargs": dict(device=d5.GPUDevice()),
     "optimizer": d5.MomentumOptimizer, "events": [d5.training_events.BatchHashEvent],
     "optimizer_kwargs": dict(gradient_modifier=lambda gradient, parameter: gradient + 1e-4 * parameter)},
    [(d5.TestAccuracy(), 1)],
)
print(recipe.configuration_hash)
"""


def test_configuration_hash_is_equal_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SCRIPT)

    results = [run_python("one.py", cwd=tmp_path, PYTHONHASHSEED=seed) for seed in ("0", "77")]

    assert {len(result.stdout.strip()) for result in results} == {64}, results[0].stderr
    assert results[0].stdout == results[1].stdout


def own_circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    return circle


@pytest.mark.parametrize("key", ["optimizer_kwargs", "model_kwargs"])
def test_containers_that_hold_themselves_are_refused(key: str) -> None:
    with pytest.raises(RecipeError, match=rf"'{key}'\] is nested deeper than 64 levels, or contains itself"):
        recipe(**{key: own_circle()})


def test_acceptable_value_that_no_float_holds_is_refused() -> None:
    with pytest.raises(RecipeError, match="acceptable value an int; accepted is a finite number"):
        Recipe(*small_parts(), [(TestAccuracy(), 10**400)])


@pytest.mark.parametrize(("name", "value"), [("direction", "higher"), ("unit", None)])
def test_metric_without_direction_or_unit_is_refused(name: str, value: Any) -> None:
    metric = type("Odd", (Constant,), {})(1.0)
    setattr(metric, name, value)

    with pytest.raises(RecipeError, match=r"Odd, has direction .*accepted are Direction.HIGHER"):
        Recipe(*small_parts(), [(metric, 1.0)])


def test_exactly_one_budget() -> None:
    fixed, mutable = small_parts()
    del fixed["epochs"]
    assert Recipe(fixed, {**mutable, "steps": 7}, METRICS).budget == {"steps": 7}
    assert Recipe(fixed, {**mutable, "time_limit_s": 2}, METRICS).budget == {"time_limit_s": 2.0}
    with pytest.raises(RecipeError, match="has no 'epochs' in FIXED or MUTABLE, nor another budget"):
        Recipe(fixed, mutable, METRICS)
    with pytest.raises(RecipeError, match="the budgets 'epochs', 'samples'; accepted is exactly one"):
        Recipe(fixed, {**mutable, "epochs": 1, "samples": 7}, METRICS)


def test_a_budget_takes_the_place_of_another_mutable_one() -> None:
    fixed, mutable = small_parts()
    epochs = fixed.pop("epochs")
    assert Recipe(fixed, {**mutable, "epochs": 3}, METRICS).replaced(steps=7).budget == {"steps": 7}
    with pytest.raises(RecipeError, match="exactly one"):
        Recipe({**fixed, "epochs": epochs}, mutable, METRICS).replaced(steps=7)
