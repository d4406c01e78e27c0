from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import content_hash
from deep500.measure.workload import Score, open_workload
from deep500.workloads import recipe as module
from tests.unit.workloads.support import opened, plain, refusal

RECIPE = """
import deep500 as d5

class Steps(d5.TestMetric):
    unit = "steps"
    kind = "cost"
    def measure(self, inputs, outputs, reference_outputs=None):
        return VALUE

VALUE = 44
FIXED = {"model": "mlp", "model_kwargs": dict(hidden=[8]), "dataset": "digits"}
MUTABLE = {
    "epochs": 1, "batch_size": 128, "executor": "reference", "optimizer": "momentum",
    "optimizer_kwargs": dict(learning_rate=0.02), "seed": 3,
}
METRICS = [(d5.TestAccuracy(), 10.0), (d5.TrainingAccuracy(), None), (Steps(), 100)]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.py"
    path.write_text(RECIPE)
    return path


def test_run_is_the_whole_recipe_and_the_first_run_counts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = []
    execute = module.execute_recipe
    monkeypatch.setattr(module, "execute_recipe", lambda recipe: run.append(recipe) or execute(recipe))

    workload = opened(f"recipe:{file},epochs=2")

    assert workload.runs_per_launch == 1
    assert [recipe["epochs"] for recipe in run] == [2]
    assert (workload.work.items, workload.work.item) == (2, "epoch")


def test_nothing_is_told(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    opened(f"recipe:{file}")

    assert capfd.readouterr() == ("", "")


def test_scores_are_the_metrics_with_their_acceptable_values(file: Path) -> None:
    accuracy, training, steps = opened(f"recipe:{file}").scores()

    assert (accuracy.name, accuracy.unit, accuracy.acceptable, accuracy.held_out) == ("TestAccuracy", "%", 10.0, True)
    assert 10 < accuracy.value < 100
    assert (training.acceptable, training.held_out) == (None, False)
    assert steps == Score("Steps", 44.0, "steps", Direction.HIGHER, MetricKind.COST, 100.0, None)


def test_it_can_be_asked_before_the_run_and_run_again(file: Path) -> None:
    workload = open_workload(f"recipe:{file}")
    before = plain(workload)
    workload.run()
    first = plain(workload)
    workload.run()

    assert (before["data_hash"], before["initialisation_hash"], before["scores"]) == (None, None, {})
    assert before["identity"] == first["identity"]
    assert before["factors"]["framework"] == first["factors"]["framework"] == "reference"
    assert first["factors"]["device"] == "cpu"
    assert first["factors"]["seed"] == 3
    assert first["factors"]["optimizer_class"] == "deep500.training.optimizers.momentum.MomentumOptimizer"
    assert len(first["data_hash"]) == len(first["initialisation_hash"]) == 64
    assert plain(workload) == first


def test_identity_is_the_experiment_whoever_runs_it(file: Path) -> None:
    def identity(changes: str = "") -> str:
        return content_hash(dict(open_workload(f"recipe:{file}{changes}").identity))

    assert identity("@reference:cpu") == identity()
    assert len({identity(c) for c in ("", ",epochs=2", ",optimizer_kwargs.learning_rate=0.1", ",seed=4")}) == 4
    before = identity()
    file.write_text(RECIPE.replace("(Steps(), 100)", "(Steps(), 99)"))
    assert identity() != before


def test_changes_reach_into_the_mutable_part(file: Path) -> None:
    workload: Any = open_workload(f"recipe:{file},optimizer_kwargs.learning_rate=0.1,seed=5")

    assert workload._recipe["optimizer_kwargs"] == {"learning_rate": 0.1}
    assert workload.factors["seed"] == 5


def test_recipe_that_comes_with_deep500_is_found_by_name() -> None:
    workload: Any = open_workload("recipe:digits_mlp@reference")

    assert workload.identity["experiment"]["model"] == "mlp"
    assert workload.work.items == 15


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_training_that_diverges_is_no_measurement(file: Path) -> None:
    workload = open_workload(f"recipe:{file},optimizer_kwargs.learning_rate=1e30")

    with pytest.raises(MeasurementError, match="The recipe small failed: The training diverged"):
        workload.run()


def test_metric_that_is_no_number_is_no_score(file: Path) -> None:
    file.write_text(RECIPE.replace("VALUE = 44", "VALUE = float('nan')"))
    workload = opened(f"recipe:{file}")

    with pytest.raises(MeasurementError, match="The score Steps has the value nan"):
        workload.scores()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (",epoch=2", "unknown key 'epoch'. Did you mean 'epochs'?"),
        (",model=lenet", "'model' is FIXED in the recipe 'small'"),
        (",epochs=0", "accepted is a whole number from 1"),
        ("@jax", "no framework named 'jax'"),
        ("@reference:tpu", "'tpu' is not a device"),
        (",optimizer=adma", "no optimizer named 'adma'. Did you mean 'adam'?"),
    ],
)
def test_change_that_is_not_accepted_is_refused(file: Path, changes: str, message: str) -> None:
    assert message in refusal(f"recipe:{file}{changes}")


def test_recipe_that_is_not_there_or_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("FIXED = {}\n")

    assert "There is no recipe file 'digits_mpl'. Did you mean 'digits_mlp'?" in refusal("recipe:digits_mpl")
    assert "defines no MUTABLE, METRICS" in refusal(f"recipe:{tmp_path}/none.py")
