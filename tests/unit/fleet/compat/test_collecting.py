from __future__ import annotations

import json
from pathlib import Path

from deep500.fleet.compat.collecting import collect_campaign
from deep500.fleet.compat.job_record import STAGES
from deep500.fleet.input_report import ProblemKind
from deep500.fleet.reading import read_outcomes
from tests.unit.fleet.compat.support import campaign_of, cell


def write_record(folder: Path, started: float = 100.0, step: float = 1.0, finished: bool = True) -> None:
    folder.mkdir(parents=True)
    stages = {
        stage: {"started": started + n * step, "ended": started + (n + 1) * step, "ok": True, "detail": "skipped: x"}
        for n, stage in enumerate(STAGES)
    }
    content = {"stages": stages, "error": None, "finished": finished, "facts": {}, "host": "n"}
    (folder / "record.json").write_text(json.dumps(content))


def test_one_torn_record_loses_its_own_cell_only(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell(), cell(ranks=2), cell(ranks=4))
    write_record(made.cell_folder(made.cells[0]))
    write_record(made.cell_folder(made.cells[1]))
    torn = made.cell_folder(made.cells[1]) / "record.json"
    torn.write_text(torn.read_text()[:100])
    collected = collect_campaign(made)
    assert [outcome.status for outcome in collected.outcomes] == ["passed", "missing", "missing"]
    assert "record.json cannot be read" in (collected.outcomes[1].cause or "")
    assert collected.report.count(ProblemKind.MALFORMED) == 1
    assert set(collected.stages[made.cells[0].cell_id].values()) == {"skipped"}
    assert set(collected.stages[made.cells[2].cell_id].values()) == {""}
    table, report = read_outcomes([made.folder / "outcomes.jsonl"])
    assert list(table.outcomes()) == list(collected.outcomes)
    assert not report.problems
    document = json.loads(json.dumps(collected.to_dict()))
    assert document["outcomes"][0]["cell"]["ranks"] == 1


def test_clocks_that_contradict_each_other_are_counted(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell(), cell(ranks=2))
    write_record(made.cell_folder(made.cells[0]), step=-1.0)
    write_record(made.cell_folder(made.cells[1]))
    collected = collect_campaign(made)
    skewed = [problem for problem in collected.report.problems if problem.kind is ProblemKind.CLOCK_SKEW]
    assert [problem.source.rsplit("/", 1)[-1] for problem in skewed] == ["outcomes.jsonl", "record.json"]
    assert skewed[1].count == 7  # each stage ends before it begins
    assert [outcome.status for outcome in collected.outcomes] == ["passed", "passed"]
    assert collected.outcomes[0].ended is None  # unknown instead of wrong
    assert collected.outcomes[1].duration_s == 7.0


def test_the_record_of_another_cell_is_a_fault(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell(), cell(ranks=2))
    for each in made.cells:
        write_record(made.cell_folder(each))
        path = made.cell_folder(each) / "record.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "cell": made.cells[0].cell_id}))
    one, other = collect_campaign(made).outcomes
    assert one.status == "passed"
    assert (other.status, "it is that of another cell" in (other.cause or "")) == ("missing", True)


def test_what_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell())
    write_record(made.cell_folder(made.cells[0]))
    (made.folder / "outcomes.jsonl").mkdir()
    collected = collect_campaign(made)
    assert [outcome.status for outcome in collected.outcomes] == ["passed"]
    assert [problem.effect for problem in collected.report.problems] == ["the table was not written"]


def test_a_campaign_without_cells(tmp_path: Path) -> None:
    collected = collect_campaign(campaign_of(tmp_path))
    assert collected.outcomes == ()
