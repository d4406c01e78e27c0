"""How a recipe's training step scales with ranks: the run that launches them, and what each launch does.

``python -m deep500.recipe.scaling FOLDER`` is one rank of a launch (:mod:`deep500.distributed.scaling.processes`).
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

from deep500.core.errors import CommunicationError, RecipeError
from deep500.core.requirement import Requirement
from deep500.distributed._launch_limits import check_ranks_fit
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.catalogue import COMMUNICATORS
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DEFAULT_BUCKET_SIZE_BYTES, DistributedOptimizer
from deep500.distributed.flat_buffers import OverlappingExecutor
from deep500.distributed.launch_environment import create_communicator, detect
from deep500.distributed.rank_options import RankOptions
from deep500.distributed.scaling.compute_model import ComputeModel, ComputeTimes, measure_compute
from deep500.distributed.scaling.design import ScalingDesign, batch_of_rank
from deep500.distributed.scaling.prediction import (
    calibration_sizes,
    calibration_to_dict,
    doubts_of_calibration,
    fit_messages,
    predict_scaling,
    predicted_algorithms,
    predicted_ranks,
)
from deep500.distributed.scaling.processes import read_job, report_failure, report_result, run_job
from deep500.distributed.scaling.result import Prediction, ScalingResult
from deep500.distributed.scaling.step_measurement import LaunchMeasurement, measure_launch
from deep500.distributed.scaling.summary import summarise_scaling
from deep500.distributed.simulation.measuring import measure_messages, measure_reduction_s_per_byte
from deep500.frameworks import FRAMEWORKS
from deep500.measure.environment.record import record_environment
from deep500.recipe._ranks import DEFAULT_SCHEME, RankSetup, find_scheme
from deep500.recipe.build import Build, build_recipe
from deep500.recipe.loading import load_recipe
from deep500.recipe.overrides import override_recipe, parse_assignment
from deep500.recipe.recipe import Recipe
from deep500.training.sampler import Batch, Sampler

__all__ = ["scale_recipe"]

#: Minibatches of a rank that its steps use in turn.
_BATCHES = 4


@dataclass(frozen=True)
class _Source:
    """Which recipe it is, as texts that a launch can be given."""

    recipe: str
    changes: tuple[str, ...] = ()
    framework: str | None = None

    def load(self) -> Recipe:
        """Read the recipe and change it."""
        changes = [parse_assignment(text) for text in self.changes]
        return override_recipe(load_recipe(self.recipe), changes=changes, framework=self.framework)


def scale_recipe(
    source: str | PathLike[str],
    design: ScalingDesign,
    *,
    changes: Sequence[str] = (),
    framework: str | None = None,
    communicator: str | None = None,
    predict_to: int = 1024,
    tell: Callable[[str], None] = lambda _: None,
    on_launch: Callable[[ScalingResult], None] | None = None,
) -> ScalingResult:
    """Measure a recipe's training step on numbers of ranks, and predict it for more.

    Args:
        source: A recipe file, or the name of a recipe that comes with Deep500.
        design: On how many ranks, and how.
        changes: Texts ``"key=value"`` that change the recipe's mutable part.
        framework: Framework that is to run it instead of the recipe's.
        communicator: Name of the transport; ``None`` for the one that fits.
        predict_to: Number of ranks up to which it is predicted; 0 for no prediction.
        tell: Is told where the run is.
        on_launch: Is given after each launch what was measured so far, as an incomplete result, so that a run which
            breaks off loses nothing.

    Raises:
        RecipeError: The recipe is not valid.
        MeasurementError: The minibatch cannot be divided, or a launch fails.
        CommunicationError: This process is a rank itself, or there cannot be so many ranks.
        Deep500Error: What the recipe describes cannot be built or trained.
    """
    _check_alone()
    check_ranks_fit(design.ranks[-1], os.environ)
    if communicator is not None and communicator not in COMMUNICATORS:
        COMMUNICATORS.get(communicator)  # says which there are
    origin = _Source(str(source), tuple(changes), framework)
    recipe = origin.load()
    for ranks in design.ranks:
        batch_of_rank(int(recipe["batch_size"]), ranks, design.mode)
    job = {"source": asdict(origin), "design": design.to_dict(), "communicator": communicator}
    run = _ScalingRun(recipe, design, job, _scheme_of(recipe), tell)
    run.measure(on_launch)
    return run.predicted(predict_to)


class _ScalingRun:
    """The launches of one scaling run."""

    def __init__(
        self, recipe: Recipe, design: ScalingDesign, job: Mapping[str, Any], scheme: str, tell: Callable[[str], None]
    ) -> None:
        self._recipe, self._design, self._job, self._scheme, self._tell = recipe, design, job, scheme, tell
        self._batch_size = int(recipe["batch_size"])
        self._launches: dict[int, list[LaunchMeasurement]] = {}
        self._known: dict[int, dict[str, Any]] = {}

    def measure(self, on_launch: Callable[[ScalingResult], None] | None) -> None:
        """Make all launches."""
        order = self._design.order()
        for number, (launch, ranks) in enumerate(order, 1):
            counted = f"{ranks} rank{'s' if ranks > 1 else ''}"
            self._tell(f"launch {number} of {len(order)}: round {launch + 1}, {counted}")
            report = _run({**self._job, "kind": "steps"}, ranks, self._design)
            self._launches.setdefault(ranks, []).append(LaunchMeasurement.from_dict(report["measurement"]))
            self._known[ranks] = report["facts"]
            if on_launch is not None:
                on_launch(self._result(None, [], complete=False))

    def predicted(self, predict_to: int) -> ScalingResult:
        """Return the whole result, with a prediction where one was asked for and can be made."""
        algorithms = predicted_algorithms(self._scheme)
        if predict_to and algorithms:
            prediction = _predict(
                self._job, self._design, self._facts, self._batch_size, algorithms, predict_to, self._tell
            )
            return self._result(prediction, doubts_of_calibration(prediction.calibration))
        missing = f"Nothing is predicted: there is no closed form of the exchange of the scheme {self._scheme!r}."
        return self._result(None, [missing] if predict_to else [])

    @property
    def _facts(self) -> dict[str, Any]:
        return self._known[max(self._known)]  # of one rank alone they do not tell whether exchanges overlap

    @functools.cached_property
    def _environment(self) -> dict[str, Any]:
        return record_environment().to_dict()

    def _result(self, prediction: Prediction | None, notes: Sequence[str], *, complete: bool = True) -> ScalingResult:
        """Return what is known by now; there is a launch or more."""
        recipe, facts = self._recipe, self._facts
        about = {
            "recipe": {"name": recipe.name, "path": recipe.path, **recipe.description},
            "configuration_hash": recipe.configuration_hash,
            "facts": dict(facts),
            "environment": self._environment,
        }
        return ScalingResult(
            recipe.name,
            self._scheme,
            facts["framework"],
            self._batch_size,
            self._design,
            summarise_scaling(self._launches, self._design, self._batch_size),
            {ranks: list(taken) for ranks, taken in self._launches.items()},
            prediction,
            [*_notes(self._design, self._scheme), *notes],
            about,
            complete,
        )


def _check_alone() -> None:
    started = detect()
    if started.launcher != "none":
        raise CommunicationError(
            f"This process is one of {started.size} that {started.launcher} started. A scaling run launches its ranks "
            "by itself: start it once, without a launcher."
        )


def _run(job: Mapping[str, Any], ranks: int, design: ScalingDesign) -> dict[str, Any]:
    return run_job("deep500.recipe.scaling", job, ranks, threads=design.threads, timeout_s=design.timeout_s)


def _notes(design: ScalingDesign, scheme: str) -> list[str]:
    """Return what a reader of the numbers must know."""
    notes = [
        "A step's time is that of the rank for which it takes longest, the median over steps; minibatches lie in "
        "memory, so that reading data is not part of it."
    ]
    crowded = [str(ranks) for ranks in design.ranks if design.oversubscribed(ranks)]
    if crowded:
        notes.append(
            f"With {', '.join(crowded)} ranks the machine is oversubscribed: ranks share processors, so that these "
            "numbers tell nothing of a machine that has enough of them."
        )
    if scheme == "native":
        notes.append(
            "The framework exchanges by itself here: its bytes and waits are not seen, and count as computing."
        )
    if design.launches < 6:
        notes.append(f"Intervals over launches need 6 of them; there are {design.launches}.")
    return notes


def _predict(
    job: Mapping[str, Any],
    design: ScalingDesign,
    facts: Mapping[str, Any],
    batch_size: int,
    algorithms: Sequence[str],
    predict_to: int,
    tell: Callable[[str], None],
) -> Prediction:
    """Measure what a step computes and what messages take, and predict from both."""
    tell("computation on one rank, for several minibatches")
    measured = _run({**job, "kind": "compute"}, 1, design)
    compute = ComputeModel.of([ComputeTimes(**times) for times in measured["times"]])
    tell("messages between two ranks")
    largest = min(facts["bucket_bytes"], facts["gradient_bytes"])
    messages = _run({**job, "kind": "messages", "sizes": calibration_sizes(largest)}, 2, design)
    calibration = fit_messages(messages["size_bytes"], messages["times_s"], messages["reduction_s_per_byte"])
    step = compute.training_step(batch_size, facts["gradient_bytes"], facts["bucket_bytes"], facts["overlaps"])
    ranks = predicted_ranks(design, predict_to, batch_size)
    points = predict_scaling(algorithms, step, design, calibration.model, ranks)
    samples = calibration_to_dict(calibration, messages["times_s"], messages["size_bytes"])
    return Prediction(points, compute, calibration, samples)


# What a launch does.


def _measure_steps(job: Mapping[str, Any], communicator: Communicator) -> dict[str, Any]:
    """Build the recipe on this rank and measure its steps."""
    design = ScalingDesign.from_dict(job["design"])
    recipe = _loaded(job)
    build, optimizer = _built(recipe, communicator)
    batches = list(_batches_of_rank(build.train_sampler, recipe["batch_size"], communicator, design.mode))
    build.executor.network.train()
    measurement = measure_launch(optimizer, batches, design)
    return {"measurement": measurement.to_dict(), "facts": _facts(optimizer)}


def _measure_compute(job: Mapping[str, Any], communicator: Communicator) -> dict[str, Any]:
    """Build the recipe in this one process and measure what its steps compute for several minibatches."""
    design = ScalingDesign.from_dict(job["design"])
    recipe = _loaded(job)
    build, optimizer = _built(recipe, communicator)  # with what a step on ranks does besides computing
    batch_size = int(recipe["batch_size"])
    shares = {batch_of_rank(batch_size, ranks, design.mode) for ranks in design.ranks}
    sizes = sorted({batch_size, max(1, batch_size // 4), *shares})
    whole = list(itertools.islice(_full_batches(build.train_sampler, batch_size), _BATCHES))
    batches = {size: [_rows(batch, 0, size) for batch in whole] for size in sizes}
    times = measure_compute(optimizer, batches, design.steps, max(1, design.warm_up))
    return {"times": [asdict(time) for time in times]}


def _measure_messages(job: Mapping[str, Any], communicator: Communicator) -> dict[str, Any]:
    """Measure messages between two ranks, and what adding takes."""
    sizes, times = measure_messages(communicator, job["sizes"], repetitions=21)
    reduction = measure_reduction_s_per_byte()
    return {"size_bytes": sizes.tolist(), "times_s": times.tolist(), "reduction_s_per_byte": reduction}


def _built(recipe: Recipe, communicator: Communicator) -> tuple[Build, DistributedOptimizer]:
    """Build the recipe as one process has it, since what a rank takes of it depends on the mode; wrap its optimizer."""
    build = build_recipe(recipe)
    setup = RankSetup(communicator, CommunicatorRanks(communicator), RankOptions())
    setup.check_precision(recipe)
    return build, setup.wrapped(build.optimizer, recipe)


_KINDS = {"steps": _measure_steps, "compute": _measure_compute, "messages": _measure_messages}


def _loaded(job: Mapping[str, Any]) -> Recipe:
    source = job["source"]
    return _Source(source["recipe"], tuple(source["changes"]), source["framework"]).load()


def _scheme_of(recipe: Recipe) -> str:
    """Return the name of the recipe's scheme.

    Raises:
        RecipeError: It is none.
    """
    value = recipe.get("distributed", DEFAULT_SCHEME)
    kind = find_scheme(value)
    return value if isinstance(value, str) else kind.__name__


def _facts(optimizer: DistributedOptimizer) -> dict[str, Any]:
    """Return what predictions and the document need of the training."""
    executor, network = optimizer.executor, optimizer.network
    described = network.parameters.values()
    sizes = [(descriptor.element_count or 0) * descriptor.numpy_dtype.itemsize for descriptor in described]
    requirement = None
    if executor.framework in FRAMEWORKS:
        requirement = getattr(FRAMEWORKS.get(executor.framework), "REQUIREMENT", None)
    version = f" {requirement.version()}" if isinstance(requirement, Requirement) else ""
    overlaps = isinstance(executor, OverlappingExecutor) and optimizer.communicator.capabilities.nonblocking
    return {
        "framework": f"{executor.framework}{version}",
        "device": str(executor.device),
        "gradient_bytes": sum(sizes),
        "bucket_bytes": max([DEFAULT_BUCKET_SIZE_BYTES, *sizes]),
        "overlaps": overlaps and type(optimizer.scheme).__name__ == "AllReduce",
        "communicator": type(optimizer.communicator).__name__,
        "optimizer": type(optimizer.base_optimizer).__name__,
    }


def _batches_of_rank(sampler: Sampler, batch_size: int, communicator: Communicator, mode: str) -> Iterator[Batch]:
    """Return a rank's minibatches: strong scaling divides those of the recipe, weak scaling deals them out."""
    rank, size = communicator.rank, communicator.size
    share = batch_of_rank(batch_size, size, mode)
    full = _full_batches(sampler, batch_size)
    if mode == "weak":
        return itertools.islice(full, rank, _BATCHES * size, size)
    return (_rows(batch, rank * share, share) for batch in itertools.islice(full, _BATCHES))


def _full_batches(sampler: Sampler, batch_size: int) -> Iterator[Batch]:
    """Iterate over minibatches without end, those left out that have fewer samples than asked for.

    Raises:
        RecipeError: No minibatch has as many.
    """
    while True:
        found = 0
        for batch in sampler:
            if all(len(array) == batch_size for array in batch.values()):
                found += 1
                yield batch
        if not found:
            raise RecipeError(
                f"The training set has no minibatch of {batch_size} samples; accepted is a batch_size of up to as many "
                "as it has."
            )
        sampler.reset()


def _rows(batch: Batch, start: int, count: int) -> Batch:
    """Return some samples of a minibatch."""
    return {name: array[start : start + count].copy() for name, array in batch.items()}


def main(arguments: Sequence[str]) -> None:
    """Do this rank's part of the job in a folder, and report."""
    (folder,) = arguments
    job = read_job(folder)
    rank = 0
    try:
        communicator = create_communicator(job["communicator"])
        rank = communicator.rank
        report = _KINDS[job["kind"]](job, communicator)
        if rank == 0:
            report_result(folder, report)
    except BaseException as error:
        report_failure(folder, error, rank)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
