from __future__ import annotations

import json

from deep500.fleet.input_report import InputReport, ProblemKind


def test_faults_are_counted_by_source_kind_and_effect() -> None:
    report = InputReport()
    report.add(ProblemKind.MALFORMED, "a", 2, ["line 1", "line 2"])
    report.add(ProblemKind.MALFORMED, "a", 5, ["line 3", "line 4"])
    report.add(ProblemKind.MALFORMED, "a", 1, effect="taken as it is")
    report.add(ProblemKind.EMPTY, "b")
    report.add(ProblemKind.EMPTY, "c", 0, ["never"])

    assert [(p.kind, p.source, p.count, p.examples, p.effect) for p in report.problems] == [
        (ProblemKind.MALFORMED, "a", 7, ["line 1", "line 2", "line 3"], "left out"),
        (ProblemKind.MALFORMED, "a", 1, [], "taken as it is"),
        (ProblemKind.EMPTY, "b", 1, [], "nothing to take"),
    ]
    assert report.count(ProblemKind.MALFORMED) == 8


def test_examples_are_one_line_of_bearable_length() -> None:
    report = InputReport()
    report.add(ProblemKind.MALFORMED, "a", 1, ["x\n\x1b[31m" + "y" * 10_000])

    example = report.problems[0].examples[0]
    assert example.isprintable()
    assert len(example) <= 300


def test_everything_in_it_is_json_that_can_be_written() -> None:
    report = InputReport()
    report.rows["\udcff"] = 3
    report.formats["\udcff"] = "junit"
    report.add(ProblemKind.ENCODING, "\udcff", 1, ["\ud800"])
    said = report.to_dict()

    assert json.dumps(said, ensure_ascii=False).encode()
    assert said["outcomes"] == 3
    assert said["sources"][0]["format"] == "junit"
    assert said["problems"][0]["kind"] == "encoding"
