"""``deep500 fleet shard whatif``: today's runners beside proposed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from deep500.cli.console import print_table
from deep500.cli.exit_codes import PASSED
from deep500.cli.fleet.options import (
    AsJson,
    Format,
    PageFile,
    PictureFile,
    Quiet,
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
from deep500.cli.progress_line import ProgressLine
from deep500.core.texts import counted
from deep500.fleet.shard.wording import duration

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport
    from deep500.fleet.outcome_table import OutcomeTable
    from deep500.fleet.shard.cases import Case
    from deep500.fleet.shard.lanes import Lane
    from deep500.fleet.shard.whatif import Load, Scenario, WhatIf
    from deep500.measure.statistics.quantiles import Interval

__all__ = ["WHATIF_EXAMPLES", "whatif_command"]

WHATIF_EXAMPLES = """\b
A lane is GPUSxSHARDS[:RUNNERS][@PERIOD]: 4x3:24 divides each commit's tests
into 3 shards on 24 runners with 4 GPUs each; 4x1:1@3h runs by the clock what no
other runner has the GPUs for. Each lane has a queue, first come, first served.
Tests are taken to last as long on fewer GPUs.

\b
Examples:
  deep500 fleet shard whatif --example
  deep500 fleet shard whatif junit/ --today 4x3:12 --proposed 2x3:22 --proposed 4x1:1@3h --rate 1.5
  deep500 fleet shard whatif times.json.gz --configuration distributed --environment '*mi355' \\
      --need '*pipeline*=4' --need '*=2' --today 4x3:12 --proposed 2x3:24 --rate 1.2

\b
Exit code:
  0 simulated, 2 a mistake in the command, or nothing that could be read
"""

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH...]", help="Outcomes of tests, or recorded seconds; none with --example."),
]
Lanes = Annotated[list[str] | None, typer.Option(metavar="LANE", help="A kind of runners; may be given several times.")]
Rate = Annotated[float | None, typer.Option(metavar="N", help="Commits an hour, at times that are not related.")]
Arrivals = Annotated[
    str | None, typer.Option(metavar="PATH", help="Outcomes; the first time at which each group was asked for counts.")
]
Commits = Annotated[int, typer.Option(metavar="N", help="Commits of a simulation; a fifth of them warm it up.")]
Replications = Annotated[int, typer.Option(metavar="N", help="Simulations; an interval needs 6.")]
Spread = Annotated[float, typer.Option(metavar="SHARE", help="Standard deviation of a shard's time over its mean.")]
SetUp = Annotated[float, typer.Option(metavar="SECONDS", help="What each shard takes before its first test.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random numbers.")]


def whatif_command(
    paths: Paths = None,
    example: Annotated[
        bool, typer.Option("--example", help="The case of 4,495 tests of which 324 need more than two GPUs.")
    ] = False,
    today: Lanes = None,
    proposed: Lanes = None,
    rate: Rate = None,
    arrivals: Arrivals = None,
    format: Format = None,
    environment: Environment = "*",
    configuration: Configuration = "*",
    need: Need = None,
    count: CountedGpus = "used",
    unknown: Unknown = "median",
    split_over: SplitOver = None,
    commits: Commits = 2000,
    replications: Replications = 20,
    spread: Spread = 0.1,
    set_up: SetUp = 0.0,
    seed: Seed = 0,
    page: PageFile = None,
    picture: PictureFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Simulate what commits wait for with today's runners and with proposed ones, and what is no longer tested."""
    from deep500.fleet.shard.whatif import what_if

    check_outputs(paths or [], page=page, picture=picture)
    needed = (format, environment, configuration, need, count)
    settings = {"commits": commits, "replications": replications, "spread": spread, "setup_s": set_up, "seed": seed}
    if example:
        work = _of_example(paths, today, proposed, rate, settings)
    else:
        work = _of_files(paths, today, proposed, (rate, arrivals), needed, settings)
    cases, lanes, load, report = work
    with ProgressLine(quiet) as line:
        rule = unknown_rule(unknown)
        result = what_if(cases, *lanes, load, unknown=rule, split_over_s=split_over, tell=line.tell)
    print_document(_document(result, report, example), as_json, lambda: _show(result, report))
    _write(result, report, page, picture)
    print_written(as_json, page=page, picture=picture)
    return PASSED


#: Tests, today's and proposed runners, what comes to them, and what was read.
_Work: TypeAlias = "tuple[list[Case], tuple[tuple[Lane, ...], tuple[Lane, ...]], Load, InputReport | None]"


def _of_example(
    paths: list[str] | None,
    today: list[str] | None,
    proposed: list[str] | None,
    rate: float | None,
    settings: dict[str, Any],
) -> _Work:
    """Return the example, with other runners and another rate where they are given."""
    from dataclasses import replace

    from deep500.core.errors import FleetError
    from deep500.fleet.shard.example import example_cases, example_lanes, example_load
    from deep500.fleet.shard.lanes import lanes_of_texts

    if paths:
        raise FleetError(f"--example brings its own tests, and {paths[0]} was named beside it; leave one out.")
    own = example_lanes()
    lanes = (lanes_of_texts(today) if today else own[0], lanes_of_texts(proposed) if proposed else own[1])
    load = replace(example_load(settings["seed"]), **settings)
    return example_cases(settings["seed"]), lanes, load if rate is None else replace(load, per_hour=rate), None


def _of_files(
    paths: list[str] | None,
    today: list[str] | None,
    proposed: list[str] | None,
    coming: tuple[float | None, str | None],
    needed: tuple[str | None, str, str, list[str] | None, str],
    settings: dict[str, Any],
) -> _Work:
    """Return what was read of files."""
    from deep500.core.errors import FleetError
    from deep500.fleet.shard.lanes import lanes_of_texts
    from deep500.fleet.shard.whatif import Load

    if not paths:
        raise FleetError("No tests were named; name files with outcomes or recorded seconds, or take --example.")
    if not today or not proposed:
        raise FleetError("Runners are missing: give --today and --proposed, each as GPUSxSHARDS:RUNNERS.")
    lanes = (lanes_of_texts(today), lanes_of_texts(proposed))
    found, report, table = read_cases(paths, *needed)
    if len(found) > 1:
        raise FleetError(f"There are {len(found)} configurations; choose one with --environment and --configuration.")
    rate, arrivals = coming
    times = None if rate is not None else _times_of(arrivals, table)
    return found[0][1], lanes, Load(rate, times, **settings), report


def _times_of(path: str | None, table: OutcomeTable | None) -> tuple[float, ...]:
    """Return when each group of outcomes was first asked for."""
    from deep500.core.errors import FleetError
    from deep500.fleet.reading import read_outcomes
    from deep500.fleet.shard.queueing import recorded_arrivals

    if path is not None:
        table = read_outcomes([path])[0]
    if table is None:
        raise FleetError("How many commits come is not known: give --rate N, or --arrivals with recorded outcomes.")
    return recorded_arrivals(table)


def _document(result: WhatIf, report: InputReport | None, example: bool) -> dict[str, Any]:
    from deep500.fleet.shard.whatif import interval_dict, scenario_dict

    load = result.load
    return {
        "input": None if report is None else report.to_dict(),
        "example": example,
        "parameters": {**vars(load), "rate_per_hour": load.rate_per_hour, "warm_up_share": 0.2},
        "today": scenario_dict(result.today),
        "proposed": scenario_dict(result.proposed),
        "changes": [
            {"figure": c.figure, "difference": interval_dict(c.difference), "verdict": c.verdict}
            for c in result.changes
        ],
    }


def _show(result: WhatIf, report: InputReport | None) -> None:
    if report is not None:
        print_input(report)
    print(_facts(result) + "\n")
    for table in (_runners(result), _figures(result), _costs(result)):
        print_table(table)
        print()
    for line in _warnings(result):
        print(line)


def _facts(result: WhatIf) -> str:
    load = result.load
    commits = load.commits if load.arrivals is None else len(load.arrivals)
    how = "unrelated arrivals" if load.arrivals is None else "recorded arrivals"
    return (
        f"{counted(load.replications, 'simulation')} of {counted(commits, 'commit')}, "
        f"{load.rate_per_hour:.3g} an hour ({how}), a shard's time varies by {load.spread:.0%}, set-up "
        f"{load.setup_s:g} s, seed {load.seed}; [..] is the 95 % interval of "
        f"the median over simulations"
    )


def _warnings(result: WhatIf) -> list[str]:
    said = []
    for what, scenario in (("today", result.today), ("proposed", result.proposed)):
        if scenario.is_overloaded:
            said.append(
                f"{what}: more work comes than the runners can do; the queue grows without end, and the figures "
                f"depend on how many commits are simulated."
            )
    return said


def _runners(result: WhatIf) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "runner", "runners", "shards", "makespan", "imbalance", "busy")]
    for what, scenario in (("today", result.today), ("proposed", result.proposed)):
        for lane in scenario.plan.lanes:
            s = scenario.plan.summary(lane)
            busy = f"{scenario.utilisation[lane.name]:.1%}"
            cells = (str(lane.runners), str(lane.shards), duration(s.makespan_s), f"{s.imbalance:.2%}", busy)
            rows.append((what, lane.name, *cells))
    return rows


def _figures(result: WhatIf) -> list[tuple[str, ...]]:
    from deep500.fleet.shard.whatif import FIGURES

    changes = {change.figure: change for change in result.changes}
    rows: list[tuple[str, ...]] = [("", "today", "proposed", "difference", "")]
    for figure, text in FIGURES.items():
        old, new = result.today.estimate(figure), result.proposed.estimate(figure)
        if old is not None or new is not None:
            change = changes.get(figure)
            rows.append(
                (
                    text,
                    _cell(old),
                    _cell(new),
                    "" if change is None else _cell(change.difference),
                    "" if change is None else change.verdict,
                )
            )
    return rows


def _cell(interval: Interval | None) -> str:
    if interval is None:
        return "none"
    hours = [f"{value / 3600:.2f}" for value in (interval.estimate, interval.low, interval.high)]
    return f"{hours[0]} h [{hours[1]} .. {hours[2]}]"


def _costs(result: WhatIf) -> list[tuple[str, ...]]:
    both: tuple[Scenario, Scenario] = (result.today, result.proposed)
    whole = both[0].coverage
    counts = (
        ("tests of every commit", "every_commit"),
        ("tests only by the clock", "periodic"),
        ("tests lost", "never"),
    )
    failures = (
        ("historical failures found at the commit", "failures_every_commit"),
        ("historical failures found late", "failures_periodic"),
        ("historical failures lost", "failures_never"),
    )
    rows: list[tuple[str, ...]] = [
        ("", "today", "proposed"),
        ("GPUs of all runners", *(f"{s.gpus:g}" for s in both)),
        ("GPU-hours a commit", *(f"{s.gpu_hours_per_commit:.2f}" for s in both)),
        ("GPU-hours a day", *(f"{s.gpu_hours_per_day:,.0f}" for s in both)),
    ]
    for text, name in counts:
        rows.append((text, *(f"{n:,} ({n / whole.tests:.1%})" for n in (getattr(s.coverage, name) for s in both))))
    if whole.failures:
        rows += [(text, *(f"{getattr(s.coverage, name):,}" for s in both)) for text, name in failures]
    return rows


def _write(result: WhatIf, report: InputReport | None, page: str | None, picture: str | None) -> None:
    if page is None and picture is None:
        return
    from deep500.core.files import write_atomically
    from deep500.fleet.page import Page
    from deep500.fleet.shard.pictures import draw_change
    from deep500.measure.rendering import picture_format, rendered

    def draw() -> Any:
        return draw_change(result)

    if picture is not None:
        write_atomically(picture, rendered(draw, picture_format(picture)), "picture")
    if page is not None:
        made = Page("What if: other runners").paragraph(_facts(result)).picture(draw, "What a commit waits for")
        for line in _warnings(result):
            made.paragraph(line)
        for header, *rows in (_figures(result), _runners(result), _costs(result)):
            made.table(header, rows)
        if report is not None:
            made.input(report)
        made.write(page)
