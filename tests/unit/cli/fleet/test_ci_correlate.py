from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.fleet.ci.generating import generate_history
from tests.unit.fleet.ci.support import table_of

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generate_history(commits=120, groups=2, jobs_per_group=3, singletons=1, idle=1, flaky_rate=0.02, seed=1)[0].write(
        "h.jsonl"
    )


def test_table_picture_and_page(capsys: Capture) -> None:
    command = ["fleet", "ci", "correlate", "h.jsonl", "--picture", "c.png", "--page", "c.html"]
    assert run_command(command) == 0
    printed = capsys.readouterr().out

    assert "120 commits (by time) x 8 jobs" in printed
    assert "7 of 8 jobs have a correlation: 3 clusters, 2 of them with several jobs (6 jobs)" in printed
    assert "never failed  1     idle0" in printed
    rows = [line.split()[:3] for line in printed.splitlines() if line[:1].isdigit() and "job" in line.split()[2]]
    assert [row[0] for row in rows][:6] == [str(number) for number in range(6)]
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")
    page = Path("c.html").read_text(encoding="utf-8")
    assert "What was read" in page
    assert page.count("<img") == 1
    assert "group0-job0" in page


def test_json_is_complete(capsys: Capture) -> None:
    assert run_command(["fleet", "ci", "correlate", "h.jsonl", "--json", "--seed", "3", "--linkage", "average"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert {"input", "history", "parameters", "jobs", "clusters", "left_out", "pairs", "matrix", "support", "tree"} <= (
        document.keys()
    )
    assert document["parameters"]["seed"] == 3
    assert document["parameters"]["linkage"] == "average"
    assert document["parameters"]["merge"] == "none"
    assert len(document["matrix"]) == len(document["jobs"]) == 7
    assert document["matrix"][0][0] == 1.0
    assert [row["number"] for row in document["jobs"]] == list(range(7))
    assert document["history"]["flaky"] > 0


def test_views_and_merging(capsys: Capture) -> None:
    statuses = ["passed", "failed"]
    rows = [
        (f"c{n}", job, statuses[(n // (1 + place)) % 2])
        for n in range(12)
        for place, job in enumerate(["x_build", "x_test", "y_build", "y_test"])
    ]
    table_of(*rows).write("views.jsonl")
    command = ["fleet", "ci", "correlate", "views.jsonl", "--json", "--support", "2"]

    def jobs(*options: str) -> set[str]:
        assert run_command([*command, *options]) == 0
        document = json.loads(capsys.readouterr().out)
        return {*(row["job"] for row in document["jobs"]), *document["left_out"]}

    assert jobs("--only", "builds") == {"x_build", "y_build"}
    assert jobs("--merge", "seed") == {"x", "y"}
    assert jobs("--only", "tests", "--test-jobs", "*", "--latest") == {"x_build", "x_test", "y_build", "y_test"}


def test_faults_of_the_input_are_shown(capsys: Capture) -> None:
    with Path("h.jsonl").open("ab") as file:
        file.write(b'{"key": "a"\n\xff\xfe{}\n')
    assert run_command(["fleet", "ci", "correlate", "h.jsonl", "--page", "c.html"]) == 0
    assert "Faults of the input" in capsys.readouterr().out
    assert "malformed" in Path("c.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["h.jsonl", "--linkage", "nearest"], "linkage is 'nearest'"),
        (["h.jsonl", "--only", "tests"], "is one of the tests"),
        (["h.jsonl", "--picture", "c.pdf"], ".png or .svg"),
        (["h.jsonl", "--page", "h.jsonl"], "h.jsonl"),
        (["none.tsv"], "There is no none.tsv"),
        (["h.jsonl", "--support", "1000"], "0 of 8 jobs both passed and failed in at least 1000 results"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["fleet", "ci", "correlate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["fleet", "ci", "correlate", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
