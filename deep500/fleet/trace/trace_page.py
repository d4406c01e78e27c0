"""A trace's report as a page."""

from __future__ import annotations

from functools import partial

from deep500.fleet.input_report import InputReport
from deep500.fleet.page import Page
from deep500.fleet.trace.classic import ClassicView
from deep500.fleet.trace.drawing import classic_figure, curves_figure
from deep500.fleet.trace.report import TraceReport
from deep500.fleet.trace.wording import (
    OUTCOMES,
    Row,
    classic_rows,
    classic_tables,
    correlation_rows,
    counted,
    effect_rows,
    group_rows,
    name_text,
    number_of,
    share_rows,
    split_rows,
    test_text,
    time_text,
)

__all__ = ["trace_page"]


def trace_page(report: TraceReport, read: InputReport) -> Page:
    """Return the page of a trace.

    Args:
        report: What is told of the trace.
        read: What was read.
    """
    page = Page("When tasks succeed or fail")
    page.paragraph(
        f"{number_of(report.tasks, 'task')} of {number_of(report.users, 'user')}. By status: "
        f"{counted(report.statuses)}. Censored: {counted(report.censored)}. Left out: {counted(report.left_out)}."
    )
    if report.absent:
        page.paragraph("Not told by this trace: " + "; ".join(f"{k} ({why})" for k, why in report.absent.items()) + ".")
    page.picture(
        partial(curves_figure, [report.whole], "All tasks"),
        "All tasks: the share that still runs (Kaplan-Meier), has failed, has passed (Aalen-Johansen); bars are "
        "intervals over users.",
    )
    _table(page, group_rows([report.whole]))
    _table(page, share_rows([report.whole]))
    _models(page, report)
    for factor in report.factors:
        page.heading(f"By {name_text(factor.title)}")
        page.paragraph(test_text(factor))
        page.picture(
            partial(curves_figure, factor.groups, f"By {name_text(factor.title)}"),
            f"Tasks by {name_text(factor.title)}, numbers of tasks in parentheses; bars are intervals over users.",
        )
        _table(page, group_rows(factor.groups))
        _table(page, share_rows(factor.groups))
    page.heading("Rank correlations")
    if report.correlations:
        _table(page, correlation_rows(report))
    if report.classic is not None:
        _classic(page, report.classic)
    page.heading("What is to be known of these figures")
    settings = report.settings
    page.paragraph(
        f"Intervals: {settings.confidence:.0%}; {settings.resamples:,} resamples of users, seed {settings.seed}."
    )
    for note in report.notes:
        page.paragraph(note)
    return page.input(read)


def _models(page: Page, report: TraceReport) -> None:
    for model in report.models:
        page.heading(f"What goes with the rate of tasks that {'fail' if model.cause == 'failed' else 'pass'}")
        page.paragraph(
            f"Cox model of {model.tasks:,} tasks, {model.events:,} of which {model.cause}, of "
            f"{number_of(model.users, 'user')}. A rate is multiplied by each of these while the others stay the same."
        )
        _table(page, effect_rows(model, report.settings.confidence))
        if model.split_s is not None:
            page.paragraph(
                f"Some effects change as time goes by, so that one number does not tell them. Before and after "
                f"{time_text(model.split_s)}, when half of these ends had come:"
            )
            _table(page, split_rows(model))
        for note in model.notes:
            page.paragraph(note)


def _classic(page: Page, view: ClassicView) -> None:
    page.heading("Classic view")
    page.paragraph(
        f"As in seed 004. Tasks with a run time: {counted(view.tasks)}; without: {counted(view.without_time)}. Counted "
        f"as failed: {counted(view.counted_as_failed)}."
    )
    _table(page, classic_tables(view))
    _table(page, classic_rows(view))
    for outcome in OUTCOMES:
        if any(found.outcome == outcome and found.groups for found in view.correlations):
            page.picture(
                partial(classic_figure, view, outcome), f"Mean time to {OUTCOMES[outcome]} of groups, by their value."
            )
    page.heading("What is wrong with the classic view")
    for flaw in view.flaws:
        page.paragraph(flaw)


def _table(page: Page, rows: list[Row]) -> None:
    page.table(rows[0], rows[1:])
