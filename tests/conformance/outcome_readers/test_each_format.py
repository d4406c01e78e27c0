"""What holds for all readers: each sample has one reader, and no fault of a file is more than a fault of that file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from deep500.fleet.outcome_table import FIELDS, OutcomeTable
from deep500.fleet.reader import head_of
from deep500.fleet.reading import READERS, read_outcomes
from tests.conformance.outcome_readers.samples import JUNIT, SAMPLES, read


def test_every_reader_has_a_sample() -> None:
    assert {format for format, _ in SAMPLES.values()} == set(READERS)


@pytest.mark.parametrize("name", SAMPLES)
def test_one_reader_claims_it_and_reads_it(name: str, tmp_path: Path) -> None:
    format, make = SAMPLES[name]
    path = make(tmp_path)

    claimed = [each for each in READERS if READERS.get(each)().matches(path, head_of(path))]
    frame, report = read(path)

    assert claimed == [format]
    assert set(report.formats.values()) == {format}
    assert frame.height
    assert list(frame.columns[: len(FIELDS)]) == list(FIELDS)
    assert_frame_equal(read(path, format)[0], frame)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("pai", "ossci_status", "pai file")])
def test_compressed_file_is_the_same(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name][1](tmp_path)
    frame, _ = read(path)

    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    if name != "junit" and "ossci" not in name:  # whose group is the file's name
        assert_frame_equal(read(packed)[0], frame)
    else:
        assert read(packed)[0].height == frame.height


@pytest.mark.parametrize("name", [n for n in SAMPLES if n != "ossci_status" and "pai" not in n and "parquet" not in n])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "crlf"])
def test_other_encodings_and_line_ends_are_the_same(name: str, encoding: str, tmp_path: Path) -> None:
    path = SAMPLES[name][1](tmp_path)
    frame, _ = read(path)
    text = path.read_text(encoding="utf-8")

    if encoding == "crlf":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    else:
        path.write_text(text.replace('encoding="utf-8"', ""), encoding=encoding)
    again, report = read(path)

    assert_frame_equal(again, frame)
    assert not any(problem.kind.value == "encoding" for problem in report.problems)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    frame, _ = read(SAMPLES[name][1](tmp_path))

    for suffix in ("jsonl", "parquet"):
        OutcomeTable(frame).write(tmp_path / f"again.{suffix}")
        again, _ = read(tmp_path / f"again.{suffix}")
        known = [column for column in frame.columns if frame[column].null_count() < frame.height or suffix == "parquet"]
        assert again.select(known).rows() == frame.select(known).rows()


def test_all_together_in_one_folder(tmp_path: Path) -> None:
    for number, (_, make) in enumerate(SAMPLES.values()):
        (tmp_path / str(number)).mkdir()
        make(tmp_path / str(number))

    table, report = read_outcomes([tmp_path])

    assert set(report.formats.values()) == set(READERS)
    assert len(table) <= sum(report.rows.values())
    assert set(table.frame["status"]) >= {"passed", "failed", "cancelled", "missing", "no_match", "unreachable"}


@pytest.mark.parametrize("format", sorted(READERS))
@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\xff\xfe", b"{", b"[]", b"{}", b"[1]", b"null", b"<testsuite>", b"a,b"]
)
def test_any_reader_bears_any_file(format: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(Exception, match="No outcome was found") as caught:
        read_outcomes([path], format)

    assert "\n" not in str(caught.value)


def test_name_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(JUNIT)

    assert read(path)[1].formats == {str(path): "junit"}
