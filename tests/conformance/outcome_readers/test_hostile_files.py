"""Files that nobody wrote on purpose: cut, flipped, bombs, devices, loops. Readers refuse them, or count faults."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport
from deep500.fleet.reading import READERS, read_outcomes
from tests.conformance.outcome_readers.samples import SAMPLES, read, told

#: Samples that are one file.
FILES = [name for name in SAMPLES if name not in ("pai", "ossci_status", "pai file")]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("samples")
    found = {name: SAMPLES[name][1](folder).read_bytes() for name in FILES}
    return {**found, "pai_task": SAMPLES["pai file"][1](folder).read_bytes()}


def _bears(path: Path, format: str | None) -> None:
    """Read a file; it is read, or refused in one line."""
    refused = ""
    try:
        table, report = read_outcomes([path], format)
    except FleetError as error:
        refused = str(error)
    else:
        assert len(table)
        assert all(problem.count for problem in report.problems)
        list(table.outcomes())  # every record is one
    assert "\n" not in refused
    assert len(refused) < 4000


#: What is likely to mean something.
TEXTS = (b'"', b"\n", b"\r\n", b",", b";", b"\0", b"\xff", b"<", b"{", b"nan", b"1e999", b"\\ud800")

changes = st.one_of(
    st.tuples(st.just("cut"), st.floats(0, 1), st.just(b"")),
    st.tuples(st.just("add"), st.floats(0, 1), st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("flip"), st.floats(0, 0.999), st.integers(1, 255).map(lambda bits: bytes([bits]))),
    st.tuples(st.just("text"), st.floats(0, 1), st.sampled_from(TEXTS)),
)  # fmt: skip


def _changed(data: bytes, changed: list[tuple[str, float, bytes]]) -> bytes:
    for what, where, more in changed:
        at = int(where * len(data))
        if what == "cut":
            data = data[:at]
        elif what == "flip" and data:
            data = data[:at] + bytes([data[at] ^ more[0]]) + data[at + 1 :]
        else:
            data = data[:at] + more + data[at:]
    return data


@pytest.mark.parametrize("name", [*FILES, "pai_task"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changed=st.lists(changes, min_size=1, max_size=4))
def test_damaged_file(
    name: str, changed: list[tuple[str, float, bytes]], samples: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / ("pai_task_table.csv" if name == "pai_task" else "file")
    path.write_bytes(_changed(samples[name], changed))

    _bears(path, None)
    _bears(path, "pai" if name == "pai_task" else SAMPLES[name][0])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), name=st.sampled_from(["file", "file.gz", "file.json", "pai_task_table.csv"]))
def test_random_bytes(data: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    _bears(path, None)
    for format in READERS:
        _bears(path, format)


@pytest.mark.parametrize("format", [None, *sorted(READERS)])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"<testsuite>" * 100_000,
        b"a," * 200_000 + b"\n1\n",
        b"x" * 1_000_000,
        b'"' * 200_001 + b"\n",
        b"\0" * 100_000,
        b'{"key": "k", "group": "g", "status": "passed", "x": ' + b"9" * 5000 + b"}",
        b'{"jobs": [' + b'{"status": 1},' * 1000 + b'{}], "total_count": 1}',
        b"job_id,user,state,start_time,end_time\n" + b"1,u,COMPLETED,262142-01-01 00:00:00,-9999-01-01 00:00:00\n",
        b"commit,a\n" + b"c,pass\r" * 1000,
    ],
    ids=["lists", "objects", "elements", "columns", "line", "quotes", "zeros", "digits", "jobs", "years", "returns"],
)
def test_extremes(content: bytes, format: str | None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    began = time.process_time()

    _bears(path, format)

    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("name", FILES)
def test_time_grows_with_the_size_and_not_with_its_square(name: str, samples: dict[str, bytes], tmp_path: Path) -> None:
    """Bytes that are no UTF-8, quotes and words that are not defined in every line."""
    path = tmp_path / "file"
    took = []
    for times in (2_000, 20_000):
        path.write_bytes(samples[name] + b'\xff"<{[,;\t\n' * times)
        began = time.process_time()
        _bears(path, SAMPLES[name][0])
        took.append(time.process_time() - began)

    assert took[1] < 30 * took[0] + 0.5


def test_bombs_are_refused_before_they_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep500.fleet.reader._BOMB_BYTES", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"commit,a\n" + b"c,pass\n" * 3_000_000))
    (tmp_path / "good.tsv").write_text("commit\ta\nc\tpass\n")

    frame, report = read(tmp_path)

    assert frame.height == 1
    assert told(report) == {"malformed": 1}
    for format in READERS:
        with pytest.raises(FleetError, match=r"No outcome was found|grows to more"):
            read(tmp_path / "bomb.gz", format)


def test_gzip_that_is_damaged_loses_only_itself(tmp_path: Path) -> None:
    whole = gzip.compress(b"commit,a\n" + bytes(range(256)) * 40)
    for number, data in enumerate((whole[:40], whole[:-4] + b"xxxx", b"\x1f\x8b", b"\x1f\x8b" + b"a" * 99)):
        (tmp_path / f"{number}.gz").write_bytes(data)
    (tmp_path / "not.gz").write_text("commit\ta\nc\tpass\n")

    frame, report = read(tmp_path)

    assert frame.height == 1
    assert sum(told(report).values()) == 4


def test_devices_pipes_loops_and_dead_links_in_a_folder_are_counted(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "good.tsv").write_text("commit\ta\nc\tpass\n")
    (inner / "again").symlink_to(tmp_path)
    (inner / "self").symlink_to(inner / "self")
    (inner / "dead").symlink_to(tmp_path / "nothing")
    (inner / "zero").symlink_to("/dev/zero")
    (inner / "same.tsv").symlink_to(inner / "good.tsv")
    os.mkfifo(inner / "pipe")

    frame, report = read(tmp_path)

    assert frame.height == 1
    assert told(report) == {"duplicate": 1, "malformed": 4, "unrecognised": 1}


@pytest.mark.parametrize("make", ["dead", "zero", "pipe", "self"])
def test_devices_pipes_and_dead_links_that_are_named_are_refused(make: str, tmp_path: Path) -> None:
    path = tmp_path / make
    if make == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"dead": tmp_path / "nothing", "zero": Path("/dev/zero"), "self": path}[make])

    with pytest.raises(FleetError) as caught:
        read(path)

    assert make in str(caught.value)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tsv"))
    path.write_text("commit\ta\nc\tpass\nc2\n")
    junit = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.xml"))
    junit.write_text('<testsuite><testcase name="t"/></testsuite>')

    frame, report = read(tmp_path)

    assert frame.height == 2
    str(report.to_dict()).encode()
    "".join(frame["group"]).encode()


def test_reader_of_another_distribution_that_is_refused_by_polars_is_counted(tmp_path: Path) -> None:
    import polars as pl

    from deep500.fleet import reading
    from deep500.fleet.reader import Reader

    class Broken(Reader):
        def matches(self, path: Path, head: bytes) -> bool:
            return True

        def read(self, path: Path, report: InputReport) -> pl.DataFrame:
            return pl.DataFrame({"a": [1]}).select("b")

    report = InputReport()
    (tmp_path / "x").write_text("x")
    assert reading._of_one(tmp_path / "x", Broken(), "broken", report).height == 0
    assert told(report) == {"malformed": 1}
