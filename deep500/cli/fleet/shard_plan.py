"""``deep500 fleet shard plan``: which runner runs which tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import (
    AsJson,
    Format,
    OutcomePaths,
    PageFile,
    PictureFile,
    check_outputs,
    print_document,
    print_input,
    print_written,
)
from deep500.cli.fleet.shard_inputs import (
    Configuration,
    CountedGpus,
    Environment,
    Need,
    SplitOver,
    Unknown,
    read_cases,
    unknown_rule,
)
from deep500.core.texts import counted
from deep500.fleet.shard.wording import duration

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.shard.cases import Case
    from deep500.fleet.shard.lanes import Lane
    from deep500.fleet.shard.planning import Plan

__all__ = ["PLAN_EXAMPLES", "plan_command"]

PLAN_EXAMPLES = """\b
What is read: outcomes of tests of any format, with as much history as there is
(the median of each test's durations counts), or recorded seconds: build ->
configuration -> file -> seconds, or test -> seconds, in a .json or .json.gz file.

\b
A lane is GPUSxSHARDS[@PERIOD]: runners with so many GPUs, and into how many
parts their work is divided; with a period (30m, 3h) it runs by the clock. Tests
go to the smallest runners that have the GPUs that they need, longest first.

\b
Examples:
  deep500 fleet shard plan times.json.gz --configuration '*distributed*' --shards 3
  deep500 fleet shard plan junit/ --runner 2x3 --runner 4x1@3h --split-over 600
  deep500 fleet shard plan junit/ --shards 3 --shard 1 | xargs -r -d '\\n' pytest

\b
Exit code:
  0 planned, 2 a mistake in the command, or nothing that could be read
"""

Row = tuple[str, ...]


def plan_command(
    paths: OutcomePaths,
    format: Format = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", help="Divide into so many parts for equal runners.")
    ] = None,
    runner: Annotated[
        list[str] | None, typer.Option(metavar="LANE", help="A kind of runners; may be given several times.")
    ] = None,
    environment: Environment = "*",
    configuration: Configuration = "*",
    need: Need = None,
    count: CountedGpus = "used",
    unknown: Unknown = "median",
    split_over: SplitOver = None,
    spill: Annotated[
        bool, typer.Option("--spill", help="Larger runners take tests of smaller ones when they would be idle.")
    ] = False,
    shard: Annotated[
        int | None, typer.Option(metavar="I", help="Write only what shard I runs, a file or test a line.")
    ] = None,
    page: PageFile = None,
    picture: PictureFile = None,
    as_json: AsJson = False,
) -> int:
    """Divide tests among runners by what they took before and the GPUs that they need."""
    from deep500.core.errors import FleetError
    from deep500.fleet.shard.planning import make_plan

    if (shards is None) == (not runner):
        raise FleetError("Runners are given as --shards N, or as one or more --runner GPUSxSHARDS; give either.")
    check_outputs(paths, page=page, picture=picture)
    found, report, _ = read_cases(paths, format, environment, configuration, need, count)
    if shard is not None:
        _check_one([name for name, _ in found])
    rule = unknown_rule(unknown)
    plans = [
        (name, make_plan(cases, _lanes(shards, runner, cases), split_over_s=split_over, unknown=rule, spill=spill))
        for name, cases in found
    ]
    chosen = None if shard is None else plans[0][1].shard(shard)
    if chosen is not None and not as_json:
        print("\n".join(chosen.lines))
    else:
        parameters = {"split_over_s": split_over, "unknown": unknown, "spill": spill, "need": need, "count": count}
        document = {
            "input": report.to_dict(),
            "parameters": parameters,
            "plans": [{"name": name, **plan.to_dict()} for name, plan in plans],
            "shard": None if chosen is None else {"shard": chosen.number, "run": chosen.lines},
        }
        print_document(document, as_json, lambda: _show(plans, report))
    _write(plans, report, page, picture)
    print_written(as_json or shard is not None, page=page, picture=picture)
    return PASSED


def _check_one(names: list[str]) -> None:
    from deep500.core.errors import FleetError

    if len(names) > 1:
        raise FleetError(
            f"There are {len(names)} configurations ({', '.join(map(repr, names[:3]))} ...), and --shard needs one; "
            f"choose it with --environment and --configuration."
        )


def _lanes(shards: int | None, runner: list[str] | None, cases: list[Case]) -> tuple[Lane, ...]:
    from deep500.fleet.shard.lanes import Lane, lanes_of_texts

    if shards is None:
        return lanes_of_texts(runner or [])
    return (Lane(max((case.gpus for case in cases), default=1.0), shards, shards),)


def _show(plans: list[tuple[str, Plan]], report: InputReport) -> None:
    print_input(report)
    if len(plans) > 1:
        print_table(_overview(plans))
        print("\nlower bound: no plan of whole files takes less; saved: of the makespan of round robin, files as given")
        return
    plan = plans[0][1]
    print(_facts(plan))
    print_table(_shards(plan))
    print()
    print_table(_lane_rows(plan))
    if plan.baselines():
        print("\nRound robin in its place:")
        print_table(_baselines(plan))
    for title, rows in _left_out(plan):
        print(f"\n{title}:")
        print_table(rows)


def _facts(plan: Plan) -> str:
    assumed = plan.assumed
    said = "all durations are known"
    if assumed.count and assumed.seconds is not None:
        taken = duration(assumed.seconds)
        said = f"{assumed.count:,} of {assumed.of:,} durations are unknown and taken as {taken} ({assumed.rule})"
    even = {part.file for shard in plan.shards for part in shard.parts if part.is_even_share}
    are = "is" if len(even) == 1 else "are"
    shares = f"; {counted(len(even), 'file')} {are} divided into shares taken to be even" if even else ""
    whole = "1 test or file" if assumed.of == 1 else f"{assumed.of:,} tests or files"
    return f"{whole}; {said}{shares}\n"


def _shards(plan: Plan) -> list[Row]:
    return [
        ("shard", "runner", "time", "parts", "longest part"),
        *(
            (
                str(shard.number),
                shard.lane.name,
                duration(shard.seconds),
                f"{len(shard.parts):,}",
                f"{shard.parts[0].name} ({duration(shard.parts[0].seconds)})" if shard.parts else "",
            )
            for shard in plan.shards
        ),
    ]


def _lane_rows(plan: Plan) -> list[Row]:
    summaries = [plan.summary(lane) for lane in plan.lanes]
    return [
        ("runner", "shards", "makespan", "lower bound", "above it at most", "imbalance", "GPU-hours"),
        *(
            (
                s.lane.name,
                str(s.lane.shards),
                duration(s.makespan_s),
                duration(s.lower_bound_s),
                f"{s.above_bound:.2%}",
                f"{s.imbalance:.2%}",
                f"{s.gpu_hours:.2f}",
            )
            for s in summaries
        ),
    ]


def _left_out(plan: Plan) -> list[tuple[str, list[Row]]]:
    """Return the tables of tests that would not run."""
    tables: list[tuple[str, list[Row]]] = []
    if plan.lost:
        rows: list[Row] = [("test", "GPUs"), *((case.name, f"{case.gpus:g}") for case in plan.lost)]
        tables.append((f"Lost: no runner has the GPUs ({len(plan.lost):,} of {plan.assumed.of:,})", rows))
    if plan.held_back:
        rows = [("test", "declared", "used"), *((c.name, f"{c.declared:g}", f"{c.gpus:g}") for c in plan.held_back)]
        title = f"Skipped on their runner until their mark is lowered to what they use ({len(plan.held_back):,})"
        tables.append((title, rows))
    return tables


def _baselines(plan: Plan) -> list[Row]:
    return [
        ("runner", "order of files", "makespan", "saved", "most that any plan could save"),
        *((b.lane.name, b.order, duration(b.makespan_s), f"{b.saved:.1%}", f"{b.most:.1%}") for b in plan.baselines()),
    ]


def _overview(plans: list[tuple[str, Plan]]) -> list[Row]:
    rows: list[Row] = [("configuration", "files", "makespan", "lower bound", "round robin", "saved", "could be saved")]
    for name, plan in plans:
        for baseline in plan.baselines():
            if baseline.order == "as given":
                summary = baseline.plan
                times = (summary.makespan_s, summary.lower_bound_s, baseline.makespan_s)
                shares = (f"{baseline.saved:.1%}", f"{baseline.most:.1%}")
                rows.append((name, f"{plan.assumed.of:,}", *map(duration, times), *shares))
    return rows


def _write(plans: list[tuple[str, Plan]], report: InputReport, page: str | None, picture: str | None) -> None:
    if page is None and picture is None:
        return
    from deep500.core.files import write_atomically
    from deep500.fleet.page import Page
    from deep500.fleet.shard.pictures import draw_plan, draw_plans
    from deep500.measure.rendering import picture_format, rendered

    one = plans[0][1] if len(plans) == 1 else None

    def draw() -> Any:
        return draw_plans(plans) if one is None else draw_plan(one)

    if picture is not None:
        write_atomically(picture, rendered(draw, picture_format(picture)), "picture")
    if page is not None:
        made = Page("Which runner runs which tests")
        if one is None:
            header, *rows = _overview(plans)
            made.picture(draw, "Makespans").table(header, rows)
        else:
            made.paragraph(_facts(one).strip()).picture(draw, "What each shard runs, part by part")
            for header, *rows in (_shards(one), _lane_rows(one), _baselines(one)):
                made.table(header, rows)
            for title, (header, *rows) in _left_out(one):
                made.heading(title).table(header, rows)
        made.input(report).write(page)
