from __future__ import annotations

import json
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from tests.conformance.outcome_readers.samples import HELIOS, JUNIT, SAMPLES
from tests.unit.recipe.support import run_python

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _run(*arguments: str) -> int:
    return run_command(["fleet", "read", *arguments])


def test_table(capsys: Capture) -> None:
    Path("junit.xml").write_text(JUNIT.replace("test_two", "test_\x1b[31mtwo").replace("\x1b", ""))
    Path("broken.jsonl").write_text('{"key": "a", "group": "g", "status": "passed"}\n{"key": 1}\nnonsense\n')

    assert _run("junit.xml", "broken.jsonl") == 0
    out = capsys.readouterr().out

    assert "10 outcomes of 2 sources" in out
    assert "malformed" in out
    assert "line 2" in out
    assert "What failed most often:" in out
    assert "tests.a::test_flaky" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_json_says_all_that_the_table_shows(capsys: Capture) -> None:
    Path("log.csv").write_text(HELIOS)

    assert _run("log.csv", "--json", "--output", "o.parquet", "--page", "p.html") == 0
    said = json.loads(capsys.readouterr().out)

    assert said["statuses"] == {"passed": 1, "failed": 1, "unreachable": 1, "missing": 1}
    assert said["input"]["sources"] == [{"source": "log.csv", "format": "helios", "outcomes": 4}]
    assert said["failing"] == [{"key": "1425512", "failed": 1, "passed": 0, "other": 0}]
    assert (said["keys"], said["groups"]) == (4, 2)
    assert "vc" in said["labels"]
    assert "1425512" in Path("p.html").read_text()

    assert _run("o.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["statuses"] == said["statuses"]


def test_what_fails_most_comes_first(capsys: Capture) -> None:
    Path("h.tsv").write_text("commit\ta\tb\tc\n1\tfail\tfail\tpass\n2\tpass\tfail\tpass\n3\tfail\tskip\tpass\n")

    assert _run("h.tsv", "--json") == 0
    assert [tuple(row.values()) for row in json.loads(capsys.readouterr().out)["failing"]] == [
        ("a", 2, 1, 0),
        ("b", 2, 0, 1),
    ]
    with Path("h.tsv").open("a") as file:
        file.write("4\tpass\tfail\tpass\n")
    assert _run("h.tsv", "--json") == 0
    assert [row["key"] for row in json.loads(capsys.readouterr().out)["failing"]] == ["b", "a"]


def test_page_and_output_are_said(capsys: Capture) -> None:
    Path("log.csv").write_text(HELIOS)

    assert _run("log.csv", "--output", "o.jsonl", "--page", "p.html", "--format", "helios") == 0
    out = capsys.readouterr().out
    assert "The table is in o.jsonl" in out
    assert "The page is in p.html" in out
    assert len(Path("o.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["nothing"], "There is no nothing"),
        (["text"], "No outcome was found in text"),
        (["log.csv", "--format", "heliox"], "Did you mean 'helios'"),
        (["log.csv", "--format", "junit"], "No outcome was found"),
        (["log.csv", "--output", "o.csv"], ".jsonl or .parquet"),
        (["log.csv", "--output", "no/o.jsonl"], "cannot be written"),
        (["log.csv", "--page", "p.pdf"], ".html"),
        (["o.jsonl", "--output", "o.jsonl"], "which is read"),
        (["log.csv", "--output", "x.jsonl", "--page", "x.jsonl"], "x.jsonl"),
        (["a\x1b[31mb"], "\\x1b"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    Path("log.csv").write_text(HELIOS)
    Path("text").write_text("nothing of this is an outcome")
    Path("o.jsonl").write_text('{"key": "a", "group": "g", "status": "passed"}\n')
    before = sorted(Path().iterdir())

    assert _run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(Path().iterdir()) == before


def test_help_names_its_codes_and_examples(capsys: Capture) -> None:
    assert _run("--help") == 0
    out = capsys.readouterr().out
    assert "Exit code:" in out
    assert "deep500 fleet read results/" in out


def test_every_format_from_the_command(capsys: Capture, tmp_path: Path) -> None:
    for number, (_, make) in enumerate(SAMPLES.values()):
        (tmp_path / "all" / str(number)).mkdir(parents=True)
        make(tmp_path / "all" / str(number))

    assert _run("all", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["input"]["sources"]) == len(SAMPLES)


def test_start_of_the_command_loads_none_of_its_libraries(tmp_path: Path) -> None:
    script = """
import sys
from deep500.cli.main import run_command
run_command(["fleet", "read", "--help"])
run_command(["fleet", "read", "nothing"][:2])
print([name for name in ("polars", "matplotlib", "jinja2", "numpy", "pandas") if name in sys.modules])
"""
    assert run_python("-c", script, cwd=tmp_path).stdout.splitlines()[-1] == "[]"
