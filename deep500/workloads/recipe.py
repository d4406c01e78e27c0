"""A recipe: a whole training, from building to its metrics."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.workload import Scalar, Score, Work, Workload, WorkloadSpec
from deep500.recipe.experiment import experiment_description
from deep500.recipe.loading import load_recipe
from deep500.recipe.overrides import override_recipe
from deep500.recipe.recipe import Recipe
from deep500.recipe.resolve import find_executor, find_optimizer, framework_of
from deep500.recipe.result import RecipeResult
from deep500.recipe.runner import execute_recipe
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.workloads._frameworks import framework_factors

__all__ = ["recipe"]

#: Metrics of which it is known on which data they are taken.
_ON_KNOWN_DATA = (TestAccuracy, TrainingAccuracy)


def recipe(spec: WorkloadSpec) -> Workload:
    """A whole recipe, once a process: data set, network and training are built, trained and measured in the run.

    The text is ``recipe:FILE_OR_NAME[,key=value]...[@FRAMEWORK[:DEVICE]]``, with a file, or the name of a recipe that
    comes with Deep500; ``key=value`` changes its mutable part as ``deep500 run --set`` does, and a framework replaces
    the recipe's own. The framework is imported before, so that the run does not wait for it. The one run of a process
    counts: it is what somebody waits for who runs the recipe.

    The scores are the recipe's metrics with their acceptable values.

    Raises:
        Deep500Error: There is no such recipe, or a change of it is not accepted.
    """
    loaded = load_recipe(spec.name)
    changed = override_recipe(loaded, changes=list(spec.options.items()), framework=spec.framework, device=spec.device)
    return _RecipeRun(changed)


class _RecipeRun(Workload):
    """Runs of one recipe; see :func:`recipe`."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._optimizer = find_optimizer(recipe["optimizer"])
        self._result: RecipeResult | None = None
        find_executor(recipe["executor"])  # imports the framework

    @property
    def runs_per_launch(self) -> int:
        """One: the first run is what a user waits for."""
        return 1

    def run(self) -> None:
        """Run the recipe, telling nobody.

        Raises:
            MeasurementError: The training diverged.
            Deep500Error: What the recipe describes cannot be built or trained.
        """
        self._result = execute_recipe(self._recipe)
        if self._result.failure is not None:
            raise MeasurementError(f"The recipe {self._recipe.name} failed: {self._result.failure}")

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """The recipe's experiment, whichever framework runs it, and its metrics, which the run takes too."""
        metrics = [[metric.name, acceptable] for metric, acceptable in self._recipe.metrics]
        return {"problem": "recipe", "experiment": experiment_description(self._recipe), "metrics": metrics}

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """Framework, version, device, settings, seed and optimizer."""
        executor = self._recipe["executor"]
        framework, device = framework_of(executor), "device of the recipe"
        if self._result is not None:
            framework, device = self._result.framework["name"], self._result.device
        return {
            **framework_factors(framework or "unknown", device),
            "seed": self._recipe["seed"],
            "optimizer_class": f"{self._optimizer.__module__}.{self._optimizer.__qualname__}",
        }

    @property
    def data_hash(self) -> str | None:
        """SHA-256 over the minibatches of the first epoch; ``None`` before the run."""
        return None if self._result is None else self._result.first_epoch_batches_hash

    @property
    def initialisation_hash(self) -> str | None:
        """SHA-256 of the first weights; ``None`` before the run."""
        return None if self._result is None else self._result.initial_weights_hash

    @property
    def work(self) -> Work:
        """The epochs that were run; before the run, those that are planned."""
        if self._result is not None:
            return Work(len(self._result.statistics["epochs"]), "epoch")
        return Work(self._recipe["epochs"], "epoch")

    def scores(self) -> list[Score]:
        """Return the metrics of the last run; none before it.

        Raises:
            MeasurementError: A metric is not a finite number.
        """
        if self._result is None:
            return []
        scores = []
        for (metric, _), found in zip(self._recipe.metrics, self._result.metrics, strict=True):
            if found.value is None:
                raise MeasurementError(f"The metric {found.name} of the recipe {self._recipe.name} was not measured.")
            kind, direction = MetricKind(metric.kind), Direction(found.direction)
            held_out = isinstance(metric, TestAccuracy) if isinstance(metric, _ON_KNOWN_DATA) else None
            scores.append(Score(found.name, found.value, found.unit, direction, kind, found.acceptable, held_out))
        return scores
