from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest

from deep500.core.errors import FileWriteError, RecipeError, TrainingError
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.measure.environment.record import environment_schema
from deep500.measure.metric import Direction, TestMetric
from deep500.measure.metrics.wallclock_time import WallclockTime
from deep500.measure.regions import collect_regions, region
from deep500.recipe.describe import describe
from deep500.recipe.experiment import experiment_hash
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import ConsoleReporter, SilentReporter
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe, run_recipe
from deep500.training.events.progress_bar import TerminalBarEvent
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.training_event import RunnerEvent, StopTraining
from tests.unit.recipe.support import Constant, check_schema, run_python, small_parts, write_recipe

LOW, HIGH = Direction.LOWER, Direction.HIGHER


class Raising(RunnerEvent):
    """Raises after the first epoch."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        raise self.error


class Counting(RunnerEvent):
    """Counts epochs in itself and in a list that all copies share by name only."""

    total = 0

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
        self.epochs.append(epoch)
        Counting.total += 1


class Locked(RunnerEvent):
    """Cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def execute(metrics: Any = None, output: Any = None, **changes: Any) -> RecipeResult:
    return execute_recipe(Recipe(*small_parts(**changes), metrics or [(TestAccuracy(), 0.0)]), output=output)


def test_recipe_that_learns_passes() -> None:
    result = execute([(TestAccuracy(), 90.0), (TrainingAccuracy(), None), (WallclockTime(), 60.0)], epochs=8)

    assert result.passed
    assert [m.passed for m in result.metrics] == [True, None, True]
    assert [m.name for m in result.metrics] == ["TestAccuracy", "TrainingAccuracy", "WallclockTime"]
    assert result.metrics[0].margin == result.metrics[0].value - 90.0
    assert len(result.statistics["epochs"]) == 8


@pytest.mark.parametrize(
    ("value", "direction", "acceptable", "passed", "margin"),
    [
        (2.0, HIGH, 1.0, True, 1.0),
        (1.0, HIGH, 1.0, True, 0.0),
        (0.5, HIGH, 1.0, False, -0.5),
        (0.5, LOW, 1.0, True, 0.5),
        (1.0, LOW, 1.0, True, 0.0),
        (2.0, LOW, 1.0, False, -1.0),
        (float("inf"), LOW, 1.0, False, float("-inf")),
    ],
)
def test_metric_decides_in_its_direction(
    value: float, direction: Direction, acceptable: float, passed: bool, margin: float
) -> None:
    result = execute([(Constant(value, direction), acceptable), (Constant(0.0), None)])

    assert result.passed is passed
    assert (result.metrics[0].passed, result.metrics[0].margin) == (passed, margin)
    assert (result.metrics[0].direction, result.metrics[1].passed) == (direction.value, None)


@pytest.mark.parametrize("direction", [LOW, HIGH])
def test_metric_that_is_no_number_fails(direction: Direction) -> None:
    result = execute([(Constant(float("nan"), direction), 1.0)])

    assert not result.passed
    assert result.to_dict()["metrics"][0]["value"] == "nan"


def test_one_unacceptable_metric_of_several_fails() -> None:
    assert not execute([(Constant(2.0), 1.0), (Constant(0.0), 1.0)]).passed


def test_divergence_fails_whatever_the_metrics_say() -> None:
    with np.errstate(all="ignore"):
        result = execute([(Constant(2.0), 1.0)], optimizer_kwargs={"learning_rate": 1e30}, epochs=3)

    assert result.metrics[0].passed
    assert not result.passed
    assert result.failure is not None
    assert "The training diverged: the loss is" in result.failure


def test_what_was_passed_is_unchanged() -> None:
    accuracy, constant, event = TestAccuracy(), Constant(1.0), Counting()
    fixed, mutable = small_parts(events=[event, TerminalBarEvent(), "batch_hash"], executor_kwargs={"events": []})
    metrics = [(accuracy, 0.0), (constant, 1.0), (accuracy, None)]
    parts = [fixed, mutable, metrics]
    before, objects = describe(parts), [copy.copy(part) for part in parts]
    counted = Counting.total

    assert run_recipe(fixed, mutable, metrics, reporter=SilentReporter())
    assert run_recipe(fixed, mutable, metrics, seed=1, changes={"batch_size": 4}, reporter=SilentReporter())

    assert describe(parts) == before
    assert parts == objects
    assert (event.epochs, constant.calls) == ([], [])
    assert Counting.total == counted + 4


def test_class_of_an_event_that_cannot_be_copied_runs() -> None:
    assert execute(events=[Locked]).complete


def test_same_recipe_gives_the_same_result(tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        execute(output=tmp_path / "result.json", train_sampler="shuffle")
        contents.append(json.loads((tmp_path / "result.json").read_text()))
        for key in ("started", "ended", "environment", "regions", "noise"):
            del contents[-1][key]
        contents[-1]["statistics"] = [
            (epoch["training"]["loss"], epoch["test"]["loss"]) for epoch in contents[-1]["statistics"]["epochs"]
        ]

    assert contents[0] == contents[1]
    assert list(tmp_path.iterdir()) == [tmp_path / "result.json"]


def test_seed_changes_weights_and_order() -> None:
    one, other = execute(seed=0), execute(seed=1)

    assert one.initial_weights_hash != other.initial_weights_hash
    assert one.first_epoch_batches_hash != other.first_epoch_batches_hash
    assert one.configuration_hash != other.configuration_hash


def test_result_file_keeps_its_schema(tmp_path: Path) -> None:
    execute(
        output=tmp_path / "r.json", seed=3, events=["batch_hash"], optimizer_kwargs={"gradient_modifier": lambda g: g}
    )
    content = json.loads((tmp_path / "r.json").read_text())

    assert content["complete"] is content["passed"] is True
    assert content["seeds"] == {"recipe": 3, "initialisation": 3, "train_sampler": 3, "validation_sampler": 3}
    assert content["framework"]["name"] == "reference"
    assert len(content["first_epoch_batches_hash"]) == 64
    assert len(content["statistics"]["epochs"]) == 2
    check_schema(content)


def paths(content: dict[str, Any]) -> list[tuple[str, ...]]:
    return [tuple(row["path"]) for row in content["regions"]["rows"]]


def test_result_tells_where_the_time_went() -> None:
    content = execute(epochs=3).to_dict()
    rows = dict(zip(paths(content), content["regions"]["rows"], strict=True))

    assert list(rows) == [
        ("imports",),
        ("data",),
        ("build",),
        ("environment",),
        ("training",),
        ("training", "training set"),
        ("training", "test set"),
        ("metrics",),
    ]
    passes = content["statistics"]["epochs"]
    for name, key in (("training set", "training"), ("test set", "test")):
        samples_s = rows["training", name]["samples_s"]
        assert len(samples_s) == 3
        for sample_s, record in zip(samples_s, passes, strict=True):
            assert sample_s >= record[key]["duration_s"]
    top_s = sum(row["total_s"] for path, row in rows.items() if len(path) == 1)
    assert 0 < top_s <= content["regions"]["elapsed_s"]


def test_result_has_regions_of_its_own_run_only() -> None:
    with collect_regions() as outer, region("around"):
        contents = [execute().to_dict() for _ in range(2)]

    assert paths(contents[0]) == paths(contents[1])
    assert [row["calls"] for row in contents[1]["regions"]["rows"]] == [1, 1, 1, 1, 1, 2, 2, 1]
    assert [row.path for row in outer.rows()] == [("around",)]


def test_result_has_the_environment_with_the_framework_loaded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write_recipe(tmp_path, text=PYTORCH)
    command = ("-m", "deep500", "run", "mine.py", "--output", "r.json", "--quiet")
    done = run_python(*command, cwd=tmp_path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr

    content = json.loads((tmp_path / "r.json").read_text())
    check_schema(content)
    environment = content["environment"]
    jsonschema.Draft202012Validator(environment_schema()).validate(environment)
    assert environment["taken"] <= content["started"] <= content["ended"]
    assert "torch" in json.dumps(environment["sections"])
    assert content["noise"]["elapsed_s"] >= content["statistics"]["training_s"]


class Waiting(TestMetric):
    """Asks the device to finish, as timings do."""

    log: ClassVar[list[Any]] = []

    def begin(self, inputs: Any) -> None:
        self.log.append(self.synchronize)

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        assert self.synchronize is not None
        self.synchronize()
        return 1.0


def test_metrics_can_wait_for_the_device() -> None:
    waiting = Waiting()
    Waiting.log.clear()

    assert execute([(waiting, 1.0)]).passed
    (synchronize,) = Waiting.log
    assert synchronize.__func__ is ReferenceExecutor.synchronize
    assert waiting.synchronize is None


def test_experiment_is_in_the_result() -> None:
    recipe = Recipe(*small_parts(), [(TestAccuracy(), 0.0)])

    assert execute_recipe(recipe).experiment_hash == experiment_hash(recipe) != recipe.configuration_hash


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TrainingError("it broke"), RuntimeError("it fell")])
def test_run_that_ends_early_is_marked_incomplete(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        execute(output=tmp_path / "r.json", events=[Raising(error)])
    content = json.loads((tmp_path / "r.json").read_text())

    assert content["complete"] is content["passed"] is False
    assert len(content["statistics"]["epochs"]) == 1
    (metric,) = content["metrics"]
    assert metric["value"] == content["statistics"]["epochs"][0]["test"]["accuracy_percent"]
    assert metric["passed"] is False
    expected = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
    assert content["failure"] == expected
    assert list(tmp_path.iterdir()) == [tmp_path / "r.json"]
    assert paths(content)[-3:] == [("training",), ("training", "training set"), ("training", "test set")]
    check_schema(content)


class Broken(TestMetric):
    """A metric with a slip in it."""

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return float(outputs.nope)


def test_metric_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="nope"):
        execute([(Broken(), 0.0), (TestAccuracy(), 0.0)], output=tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())

    broken, accuracy = content["metrics"]
    assert broken["value"] is None
    assert accuracy["value"] == content["statistics"]["epochs"][-1]["test"]["accuracy_percent"]
    assert content["passed"] is broken["passed"] is accuracy["passed"] is False


def test_event_may_stop_the_training() -> None:
    result = execute([(TestAccuracy(), 0.0)], events=[Raising(StopTraining())])

    assert result.passed
    assert result.statistics["outcome"] == "stopped"


def test_unwritable_output_is_found_out_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match=r"cannot be written to .*No such file"):
        execute(output=tmp_path / "none" / "r.json", dataset=lambda: pytest.fail("the data were loaded"))


def test_verdict_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    fixed, mutable = small_parts()

    assert run_recipe(fixed, mutable, [(Constant(1.0), 2.0)]) is False

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Recipe test_runner (")
    assert lines[-2:] == ["Constant  1 u    >= 2 u      -1 u    FAILED", "FAILED"]


def test_framework_of_the_caller_is_used() -> None:
    fixed, mutable = small_parts(executor="tensorflow")

    assert run_recipe(fixed, mutable, [(TestAccuracy(), 0.0)], framework="reference", reporter=SilentReporter())


def test_recipe_is_named_for_the_callers_file_unless_it_has_a_name() -> None:
    names = []

    class Noting(SilentReporter):
        def started(self, result: RecipeResult) -> None:
            names.append((result.recipe["name"], result.recipe["path"]))

    fixed, mutable = small_parts()
    run_recipe(fixed, mutable, [(Constant(1.0), None)], reporter=Noting())
    run_recipe(fixed, mutable, [(Constant(1.0), None)], reporter=Noting(), name="mine")

    assert names == [("test_runner", __file__), ("mine", __file__)]


PYTORCH = '''
""" A recipe as in the founding document, with weight decay of its own. """

import deep500 as d5
from recipes.recipe import run_recipe

# Using PyTorch as the framework
import deep500.frameworks.pytorch as d5fw

DECAY = 1e-4

# Fixed Components
FIXED = {{
    'model': 'mlp',
    'model_kwargs': dict(hidden=(32,)),
    'dataset': 'digits',
    'train_sampler': d5.ShuffleSampler,
    'epochs': 3
}}

# Mutable Components
MUTABLE = {{
    'batch_size': 64,
    'executor': d5fw.from_model,
    'executor_kwargs': dict(device=d5.CPUDevice()),
    'optimizer': d5fw.MomentumOptimizer,
    'optimizer_args': (0.1, 0.9),
    'optimizer_kwargs': dict(gradient_modifier=lambda gradient, parameter: gradient + DECAY * parameter),
}}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 80.0)
]


if __name__ == '__main__':
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
'''


def test_script_of_the_founding_document_passes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write_recipe(tmp_path, text=PYTORCH)

    result = run_python("mine.py", cwd=tmp_path, OMP_NUM_THREADS="1")

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == f"Recipe mine ({tmp_path / 'mine.py'})"
    assert result.stdout.splitlines()[-1] == "PASSED"


def test_script_that_fails_exits_with_1(tmp_path: Path) -> None:
    write_recipe(tmp_path, metrics="(d5.TestAccuracy(), 100.1)")

    result = run_python("mine.py", cwd=tmp_path)

    assert result.returncode == 1, result.stderr
    assert result.stdout.splitlines()[-1] == "FAILED"


def test_console_reporter_keeps_the_protocol() -> None:
    from deep500.recipe.reporter import Reporter

    reporters: list[Reporter] = [ConsoleReporter(), SilentReporter()]

    assert all(callable(reporter.finished) for reporter in reporters)


class Odd(Constant):
    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> Any:
        return {0: None, 1: "abc", 2: np.array([1.0, 2.0])}[int(self.value)]


@pytest.mark.parametrize(("case", "shown"), [(0, "None"), (1, "'abc'"), (2, r"array\(\[1\., 2\.\]\)")])
def test_metric_that_measures_no_number_is_refused(case: int, shown: str) -> None:
    with pytest.raises(RecipeError, match=f"The metric Odd measured {shown}; accepted is a number"):
        execute_recipe(Recipe(*small_parts(), [(Odd(case), None)]))


def test_the_same_recipe_twice_gives_the_same(tmp_path: Path) -> None:
    accuracy = TestAccuracy()
    recipe = Recipe(*small_parts(events=["batch_hash"]), [(accuracy, 50.0), (accuracy, 60.0)])
    results = [execute_recipe(recipe) for _ in range(2)]

    first, second = ([epoch["training"]["loss"] for epoch in r.statistics["epochs"]] for r in results)
    assert first == second
    assert results[0].metrics == results[1].metrics
    assert results[0].first_epoch_batches_hash == results[1].first_epoch_batches_hash


def test_result_says_what_was_computed_in(tmp_path: Path) -> None:
    plain = execute_recipe(Recipe(*small_parts(epochs=1), [(TestAccuracy(), None)])).numerics
    mixed = execute_recipe(
        Recipe(*small_parts(epochs=1, precision="float16", deterministic=True), [(TestAccuracy(), None)]),
        output=tmp_path / "r.json",
    ).numerics

    assert plain == {"precision": "float32", "determinism": None, "loss_scaling": None}
    assert (mixed["precision"], mixed["loss_scaling"]["skipped"]) == ("float16", 0)
    assert mixed["determinism"]["framework"] == "reference"
    check_schema(json.loads((tmp_path / "r.json").read_text()))
