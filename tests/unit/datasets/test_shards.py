from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import DatasetError
from deep500.datasets._shards import Shards
from tests.dataset_files import write_tar

SAMPLES = st.lists(st.tuples(st.binary(max_size=1500), st.integers(0, 9)), max_size=6)


@given(st.lists(SAMPLES, min_size=1, max_size=3))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, shards: list[list[tuple[bytes, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    paths = [
        write_tar(
            folder / f"{n}.tar",
            [
                m
                for i, (image, label) in enumerate(shard)
                for m in ((f"a/{i}.jpg", image), (f"a/{i}.cls", b"%d" % label))
            ],
            "w:",
        )
        for n, shard in enumerate(shards)
    ]

    read = Shards(paths)

    expected = [sample for shard in shards for sample in shard]
    assert [(read.read(n), int(read.labels[n])) for n in range(len(read))] == expected
    copied = pickle.loads(pickle.dumps(read))
    assert [copied.read(n) for n in range(len(read))] == [image for image, _ in expected]


@given(st.data())
def test_every_truncation_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = write_tar(
        tmp_path_factory.mktemp("s") / "a.tar",
        [("0.jpg", b"x" * 600), ("0.cls", b"1"), ("1.jpg", b""), ("1.cls", b"0")],
        "w:",
    )
    content = path.read_bytes()
    end = 512 * 8  # of the last member; zeros follow
    assert not any(content[end:])
    path.write_bytes(content[: data.draw(st.integers(0, end + 511))])

    with pytest.raises(DatasetError, match=r"truncated|cannot be read"):
        Shards([path])


def test_labels_in_json_other_members_and_folders(tmp_path: Path) -> None:
    members: list[tuple[str, bytes | str]] = [
        ("x/0.json", b'{"label": 3, "more": 1}'),
        ("x/0.jpeg", b"image"),
        ("x/0.txt", b"a caption"),
        ("y/0.json", b'{"width": 7}'),
        ("y/0.cls", b" 4\n"),
        ("y/0.PNG", b"other"),
    ]

    read = Shards([write_tar(tmp_path / "a.tar", members, "w:")])

    assert read.labels.tolist() == [3, 4]
    assert [read.read(0), read.read(1)] == [b"image", b"other"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("0.jpg", b"x")], "the sample '0' has no label"),
        ([("0.cls", b"1")], "the sample '0' has no image"),
        ([("0.jpg", b"x"), ("1.cls", b"1")], "has no label"),
        ([("0.jpg", b"x"), ("0.png", b"x"), ("0.cls", b"1")], "second image"),
        ([("0.jpg", b"x"), ("0.cls", b"one")], "holds no label"),
        ([("0.jpg", b"x"), ("0.cls", b"-1")], "label -1"),
        ([("0.jpg", b"x"), ("0.cls", b"9" * 30)], "holds the label"),
        ([("0.jpg", b"x"), ("0.json", b'{"label": "1"}')], "label '1'"),
        ([("0.jpg", b"x"), ("0.json", b"[" * 100_000)], "holds no label"),
        ([("0.jpg", b"x"), ("0.json", b"[1]")], "holds no label"),
        ([("../0.jpg", b"x"), ("../0.cls", b"1")], "leads out of it"),
        ([("/0.jpg", b"x"), ("/0.cls", b"1")], "leads out of it"),
        ([("0.jpg", "/etc/passwd"), ("0.cls", b"1")], "no plain file"),
        ([("n01440764.tar", b"x")], "is an archive itself"),
    ],
)
def test_archives_that_are_no_shards(tmp_path: Path, members: list[tuple[str, bytes | str]], message: str) -> None:
    path = write_tar(tmp_path / "a.tar", members, "w:")

    with pytest.raises(DatasetError, match=message) as caught:
        Shards([path])
    assert str(path) in str(caught.value)


def test_compressed_archives_and_other_files(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("0.jpg", b"x"), ("0.cls", b"1")], "w:gz")
    with pytest.raises(DatasetError, match="not compressed"):
        Shards([path])
    path.write_bytes(b"<html>" * 200)
    with pytest.raises(DatasetError, match="cannot be read"):
        Shards([path])
    with pytest.raises(DatasetError, match="cannot be read"):
        Shards([tmp_path / "nowhere.tar"])


def test_an_archive_that_was_cut_later(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("0.jpg", b"x" * 5000), ("0.cls", b"1")], "w:")
    read = Shards([path])
    path.write_bytes(path.read_bytes()[:1000])

    with pytest.raises(DatasetError, match="cut after it was indexed"):
        read.read(0)


def test_threads_share_handles_which_are_closed(tmp_path: Path) -> None:
    members: list[tuple[str, bytes | str]] = []
    for number in range(50):
        members += [(f"{number}.jpg", bytes([number]) * 3000), (f"{number}.cls", b"0")]
    before = len(os.listdir("/proc/self/fd"))
    read = Shards([write_tar(tmp_path / "a.tar", members, "w:")])
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read.read, list(range(50)) * 4)) == [bytes([n]) * 3000 for n in range(50)] * 4
    del read

    assert len(os.listdir("/proc/self/fd")) == before
