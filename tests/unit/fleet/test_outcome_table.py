from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep500.core.errors import FileWriteError, FleetError
from deep500.fleet.outcome import STATUSES, Outcome
from deep500.fleet.outcome_table import FIELDS, OutcomeTable, conform
from deep500.fleet.reading import read_outcomes

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
numbers = st.none() | st.floats(-1e9, 1e9)
positive = st.none() | st.floats(0, 1e6)
records = st.builds(
    Outcome, texts, texts, st.sampled_from(STATUSES), st.none() | texts, submitted=numbers, gpus=positive,
    cost=positive,
    labels=st.fixed_dictionaries({}, optional={"text": texts, "number": st.floats(-1e9, 1e9), "truth": st.booleans()}),
)  # fmt: skip


def test_cost_is_computed_where_it_is_unknown() -> None:
    table = OutcomeTable.from_outcomes(
        [
            Outcome("two", "g", "passed", started=0.0, ended=3600.0, gpus=2.0),
            Outcome("none", "g", "passed", started=0.0, ended=3600.0, gpus=0.0),
            Outcome("unknown", "g", "passed", started=0.0, ended=1800.0),
            Outcome("given", "g", "passed", started=0.0, ended=1800.0, cost=7.0),
            Outcome("runs", "g", "missing", started=0.0),
        ]
    )

    assert table.frame["cost"].to_list() == [2.0, 1.0, 0.5, 7.0, None]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    outcomes=st.lists(records, min_size=1, max_size=6, unique_by=lambda o: (o.key, o.group)),
    suffix=st.sampled_from(["jsonl", "parquet"]),
)
def test_records_come_back_as_they_were(outcomes: list[Outcome], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"o.{suffix}"
    OutcomeTable.from_outcomes(outcomes).write(path)
    again = list(read_outcomes([path])[0].outcomes())

    assert [_said(outcome) for outcome in again] == [_said(outcome) for outcome in outcomes]


def _said(outcome: Outcome) -> tuple[object, ...]:
    return (*(getattr(outcome, name) for name in FIELDS), dict(outcome.labels))


def test_empty_table() -> None:
    table = OutcomeTable.from_outcomes([])

    assert (len(table), table.labels) == (0, ())
    assert dict(table.frame.schema) == FIELDS


def test_labels_with_names_of_fields_and_of_several_kinds_are_refused() -> None:
    with pytest.raises(FleetError, match="'cost', which is a field"):
        OutcomeTable.from_outcomes([Outcome("k", "g", "passed", labels={"cost": 1.0})])
    with pytest.raises(FleetError, match="values of one kind"):
        OutcomeTable.from_outcomes([Outcome("k", "g", "passed", labels={"x": value}) for value in (1.0, "a")])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"group": ["g"]}, "no column 'key'"),
        ({"key": ["k"], "group": [None], "status": ["passed"]}, "no group"),
        ({"key": [""], "group": ["g"], "status": ["passed"]}, "no key"),
        ({"key": ["k"], "group": ["g"], "status": ["pass"]}, "Statuses are"),
        ({"key": ["k"], "group": ["g"], "status": [0]}, "'status'.*texts are needed"),
        ({"key": [["k"]], "group": ["g"], "status": ["passed"]}, "'key'.*texts are needed"),
        ({"key": ["k"], "group": ["g"], "status": ["passed"], "started": ["soon"]}, "holds what it cannot"),
        ({"key": ["k"], "group": ["g"], "status": ["passed"], "gpus": [[1]]}, "'gpus'.*numbers are needed"),
        ({"key": ["k"], "group": ["g"], "status": ["passed"], "cost": [datetime(2026, 1, 1)]}, "numbers are needed"),
        ({"key": ["k"], "group": ["g"], "status": ["passed"], "x": [{"a": 1}]}, "label 'x'"),
    ],
)
def test_frames_that_are_no_outcomes(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(FleetError, match=message):
        conform(pl.DataFrame(columns))


def test_frames_of_others_are_taken_with_their_dtypes() -> None:
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    frame = conform(
        pl.DataFrame(
            {"key": [7], "group": ["g"], "status": ["passed"], "started": [moment], "ended": ["1767225601"],
             "day": [moment.date()]},
            schema_overrides={"status": pl.Categorical},
        )
    )  # fmt: skip

    assert frame.row(0)[:3] == ("7", "g", "passed")
    assert frame.select("started", "ended", "day").row(0) == (1767225600.0, 1767225601.0, "2026-01-01")


def test_what_json_cannot_say_is_left_out(tmp_path: Path) -> None:
    frame = pl.DataFrame({"key": ["k"], "group": ["g"], "status": ["passed"], "speed": [float("nan")]})
    OutcomeTable(frame).write(tmp_path / "o.jsonl")

    assert json.loads((tmp_path / "o.jsonl").read_text()) == {"key": "k", "group": "g", "status": "passed"}


def test_names_that_cannot_be_written(tmp_path: Path) -> None:
    table = OutcomeTable.from_outcomes([Outcome("k", "g", "passed")])

    with pytest.raises(FleetError, match=r"\.jsonl or \.parquet"):
        table.write(tmp_path / "o.csv")
    with pytest.raises(FileWriteError):
        table.write(tmp_path / "no" / "o.jsonl")


def test_other_rows() -> None:
    table = OutcomeTable.from_outcomes([Outcome("a", "g", "passed"), Outcome("b", "g", "failed")])

    failed = table.with_frame(table.frame.filter(pl.col("status") == "failed"))
    assert [outcome.key for outcome in failed.outcomes()] == ["b"]
