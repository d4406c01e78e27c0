"""``deep500 scale``: how a recipe's training step scales with ranks, measured and predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_error, print_table
from deep500.cli.progress_line import ProgressLine
from deep500.core.quantities import scaled
from deep500.core.texts import counted

if TYPE_CHECKING:
    from deep500.distributed.scaling.design import ScalingDesign
    from deep500.distributed.scaling.result import Prediction, ScalingResult
    from deep500.distributed.scaling.summary import Estimate, MeasuredPoint

__all__ = ["SCALE_EXAMPLES", "scale_command", "show_scaling"]

SCALE_EXAMPLES = """\b
Examples:
  deep500 scale digits_lenet --ranks 1,2
  deep500 scale digits_lenet --ranks 1,2,4 --mode weak --output scaling.json --picture scaling.svg
  deep500 scale my_recipe.py --ranks 1,2 --framework tensorflow --set batch_size=128
  deep500 scale digits_mlp --ranks 1,2 --launches 1 --steps 10 --predict-to 0

\b
Strong scaling keeps the minibatch of all ranks together (the recipe's
batch_size), weak scaling that of each rank. Efficiencies are against the first
number of ranks, the base case. Each number of ranks is launched several times,
in random order, with as many threads a rank as the others.

\b
Exit code:
  0 measured, 2 a mistake in the command or the recipe, or a launch that fails,
  130 interrupted. What was measured before is shown, and written as incomplete.
"""

RecipeName = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe file, or the name of one that comes with Deep500.")
]
Ranks = Annotated[str, typer.Option(metavar="N,N...", help="The numbers of ranks; the least is the base case.")]
Mode = Annotated[str, typer.Option(metavar="MODE", help="strong or weak.")]
Framework = Annotated[
    str | None, typer.Option(metavar="NAME", help="Run it with this framework instead of the recipe's.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a MUTABLE key; may be given several times."),
]
Launches = Annotated[int, typer.Option(metavar="N", help="Launches of each number of ranks; an interval needs 6.")]
Steps = Annotated[int, typer.Option(metavar="N", help="Timed steps of a launch.")]
WarmUp = Annotated[int, typer.Option(metavar="N", help="Steps before them that do not count.")]
Threads = Annotated[int, typer.Option(metavar="N", help="Threads of each rank, whatever their number.")]
CommunicatorName = Annotated[
    str | None, typer.Option(metavar="NAME", help="What carries the messages; by default what fits.")
]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", help="Longest time of one launch; it is ended then.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random order of launches.")]
PredictTo = Annotated[int, typer.Option(metavar="N", help="Predict up to so many ranks; 0 predicts nothing.")]
Output = Annotated[str | None, typer.Option(metavar="FILE", help="Write the result to this JSON file.")]
Picture = Annotated[str | None, typer.Option(metavar="FILE", help="Draw it: a .png or .svg file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

Row = tuple[str, ...]


def scale_command(
    recipe: RecipeName,
    ranks: Ranks,
    mode: Mode = "strong",
    framework: Framework = None,
    changes: Changes = None,
    launches: Launches = 6,
    steps: Steps = 30,
    warm_up: WarmUp = 10,
    threads: Threads = 1,
    communicator: CommunicatorName = None,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    predict_to: PredictTo = 1024,
    output: Output = None,
    picture: Picture = None,
    quiet: Quiet = False,
) -> int:
    """Measure a recipe's training step on several numbers of ranks, and predict it for more."""
    from deep500.core.counts import check_count
    from deep500.core.errors import MeasurementError
    from deep500.core.files import check_separate, check_writable
    from deep500.distributed.scaling.design import ScalingDesign, ranks_of_text
    from deep500.measure.rendering import picture_format

    design = ScalingDesign(ranks_of_text(ranks), mode, launches, steps, warm_up, threads, seed, timeout)
    upto = check_count("predict_to", predict_to, least=0, error=MeasurementError)
    check_separate({"result": output, "picture": picture})
    if picture is not None:
        picture_format(picture)
    for path, what in ((output, "result"), (picture, "picture")):
        if path is not None:
            check_writable(path, what)
    settings = {"changes": changes or (), "framework": framework, "communicator": communicator, "predict_to": upto}
    _measure(recipe, design, settings, output, picture, quiet)
    return 0


def _measure(
    recipe: str, design: ScalingDesign, settings: dict[str, Any], output: str | None, picture: str | None, quiet: bool
) -> None:
    """Measure; show and write what was found at the end, and also when something breaks it off."""
    from deep500.core.texts import shown_path
    from deep500.recipe.scaling import scale_recipe

    latest: list[ScalingResult] = []
    written: dict[str, str] = {}

    def keep(result: ScalingResult) -> None:
        latest[:] = [result]
        if output is not None:
            result.write(output)
            written["result"] = output

    try:
        with ProgressLine(quiet) as line:
            result = scale_recipe(recipe, design, **settings, tell=line.tell, on_launch=keep)
        keep(result)
        if picture is not None:
            result.draw(picture)
            written["picture"] = picture
    except KeyboardInterrupt:
        if not latest:
            print_error("interrupted before the first launch had ended, so nothing was measured.")
        raise
    finally:
        for result in latest:
            show_scaling(result)
            for what, path in written.items():
                print(f"The {what} is in {shown_path(path)}")


def show_scaling(result: ScalingResult) -> None:
    """Write what was found: steps, where their time goes by rank, predictions, and what makes them doubtful."""
    design = result.design
    print(result.what)
    if not result.complete:
        print(result.how_far)
    print(
        f"{counted(design.launches, 'launch', 'launches')} of {counted(design.steps, 'step')}, "
        f"{counted(design.threads, 'thread')} a rank; 95 % intervals in brackets"
    )
    print(f"Base case of speedup and efficiency: {result.base_case}")
    print()
    print_table([("ranks", "step", "", "throughput", "", "speedup", "efficiency", "", ""), *_steps(result.points)])
    print("\nOf a step, by rank:")
    header = (
        "ranks",
        "rank",
        "compute",
        "exchange",
        "exposed",
        "imbalance",
        "ahead of last",
        "clock offset",
        "sent",
    )
    print_table([header, *_parts(result.points)])
    if result.prediction is not None:
        print()
        _show_prediction(result, result.prediction)
    print()
    for note in result.notes:
        print(f"Note: {note}")


def _steps(points: Sequence[MeasuredPoint]) -> Iterable[Row]:
    for point in points:
        yield (
            str(point.ranks),
            *_cells("s", point.step_s),
            *_cells("samples/s", point.samples_per_s),
            f"{point.speedup.value:.2f}",
            *_cells("%", point.efficiency.times(100)),
            "oversubscribed" if point.oversubscribed else "",
        )


def _parts(points: Sequence[MeasuredPoint]) -> Iterable[Row]:
    for point in points:
        for rank in point.by_rank:
            low, high = (end * 1e6 for end in rank.clock_offset_s)
            parts = (rank.compute_s, rank.exchange_s, rank.exposed_s, rank.imbalance_s, rank.lead_s)
            yield (
                str(point.ranks),
                str(rank.rank),
                *(" ".join(_cells("s", part)).rstrip() for part in parts),
                f"{low:.1f} .. {high:.1f} us",
                scaled("B", rank.bytes_a_step["sent_bytes"])[0],
            )


def _cells(unit: str, estimate: Estimate) -> tuple[str, str]:
    """Return an estimate and its interval as two cells."""
    if estimate.low is None or estimate.high is None:
        return scaled(unit, estimate.value)[0] if unit != "%" else f"{estimate.value:.1f} %", ""
    if unit == "%":
        return f"{estimate.value:.1f} %", f"[{estimate.low:.1f} .. {estimate.high:.1f}]"
    largest, value, low = scaled(unit, estimate.high, estimate.value, estimate.low)  # the others may be 0
    high, _, suffix = largest.partition(" ")
    return f"{value} {suffix}", f"[{low} .. {high}]"


def _show_prediction(result: ScalingResult, prediction: Prediction) -> None:
    """Write the predicted efficiencies, and how far they can be believed."""
    calibration, compute = prediction.calibration, prediction.compute
    lines = counted(len(calibration.model.segments), "line")
    print(
        f"Predicted from a step that computes {scaled('s', compute.fixed_s)[0]} + {scaled('s', compute.sample_s)[0]} a "
        f"sample, and messages between two ranks of this machine: {lines}, from "
        f"{scaled('s', calibration.model.latency_s)[0]}; on {len(calibration.held_out_bytes)} sizes that were held out "
        f"they miss by {calibration.median_relative_error:.0%} (median), {calibration.largest_relative_error:.0%} "
        f"(largest). Step (and efficiency) by how the exchange may be carried out:"
    )
    errors = prediction.step_errors(result.points)
    names = list(prediction.points)
    counts = [point.ranks for point in prediction.points[names[0]]]
    crowded = {point.ranks for point in result.points if point.oversubscribed}
    rows = [("ranks", *names, "step against measured")]
    for place, ranks in enumerate(counts):
        points = [prediction.points[name][place] for name in names]
        against = ", ".join(f"{errors[name][ranks]:+.0%}" for name in names) if ranks in errors[names[0]] else ""
        against += " (oversubscribed)" if ranks in crowded else ""
        cells = [f"{scaled('s', point.step_s)[0]} ({100 * point.efficiency:.1f} %)" for point in points]
        rows.append((f"{ranks:,}", *cells, against))
    print_table(rows)
