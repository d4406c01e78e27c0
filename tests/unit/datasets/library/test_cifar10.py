from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.library import _cifar10_files as files
from deep500.datasets.library.cifar10 import cifar10
from deep500.datasets.loading import load_dataset

NAMES = (*files.TRAINING_FILES, files.TEST_FILE)
RECORD_BYTES = 3073


def contents(records: int = 3) -> dict[str, bytes]:
    """Make small files of the format."""
    random = np.random.default_rng(0)
    made = {}
    for name in NAMES:
        record = random.integers(0, 256, (records, RECORD_BYTES), dtype=np.uint8)
        record[:, 0] %= 10
        made[name] = record.tobytes()
    return made


def write_folder(folder: Path, made: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(folder: Path, members: list[tuple[str, bytes | str]]) -> Path:
    """Write an archive; a member whose content is a text is a symbolic link to it."""
    with tarfile.open(folder / files.ARCHIVE, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return folder / files.ARCHIVE


def published_members(made: dict[str, bytes]) -> list[tuple[str, bytes | str]]:
    return [(f"{files.BATCH_FOLDER}/{name}", content) for name, content in made.items()]


def publish(monkeypatch: pytest.MonkeyPatch, made: dict[str, bytes], archive: Path | None = None) -> None:
    """Make the small files the published ones."""
    monkeypatch.setattr(files, "SHA256", {name: hashlib.sha256(content).hexdigest() for name, content in made.items()})
    if archive:
        monkeypatch.setattr(files, "ARCHIVE_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())


def test_records_are_read_as_published(tmp_path: Path) -> None:
    made = contents()
    write_folder(tmp_path / files.BATCH_FOLDER, made)

    train, test = cifar10("x", "y", folder=tmp_path, normalize=False, verify=False)

    assert (len(train), len(test)) == (15, 3)
    raw = np.frombuffer(made["data_batch_2.bin"], np.uint8).reshape(3, RECORD_BYTES)
    sample = train[4]  # the second record of the second file
    assert sample["y"] == raw[1, 0]
    np.testing.assert_array_equal(sample["x"], raw[1, 1:].reshape(3, 32, 32).astype(np.float32) / np.float32(255))
    # The green value of row 2, column 5, by the published description.
    assert sample["x"][1, 2, 5] == np.float32(raw[1, 1 + 1024 + 2 * 32 + 5]) / np.float32(255)
    np.testing.assert_array_equal(test[:]["y"], np.frombuffer(made["test_batch.bin"], np.uint8)[::RECORD_BYTES])


def test_what_the_samples_are(tmp_path: Path) -> None:
    write_folder(tmp_path / files.BATCH_FOLDER, contents())

    train, _ = load_dataset("cifar10", folder=tmp_path, verify=False)

    assert (train.sample_shape, train.dtype, train.classes) == ((3, 32, 32), "float32", 10)
    assert train.loss == "SoftmaxCrossEntropyLoss"
    batch = train[[0, 7]]
    assert (batch["input"].dtype, batch["input"].shape) == (np.float32, (2, 3, 32, 32))
    assert batch["label"].dtype == np.int64
    assert train.descriptors["input"].shape == ("batch", 3, 32, 32)


def test_normalising_is_per_channel(tmp_path: Path) -> None:
    write_folder(tmp_path / files.BATCH_FOLDER, contents())
    plain = cifar10(folder=tmp_path, normalize=False, verify=False)[0][:]["input"].astype(np.float64)
    mean = np.array([0.4914, 0.4822, 0.4465]).reshape(3, 1, 1)
    deviation = np.array([0.2470, 0.2435, 0.2616]).reshape(3, 1, 1)

    normalised = cifar10(folder=tmp_path, verify=False)[0][:]["input"]

    np.testing.assert_allclose(normalised, (plain - mean) / deviation, rtol=1e-5, atol=1e-6)


def test_folder_archive_and_the_files_themselves_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = contents()
    (tmp_path / "a").mkdir()
    write_archive(tmp_path / "a", [("cifar-10-batches-bin/readme.html", b"hello"), *published_members(made)])
    folders = [
        write_folder(tmp_path / "u" / files.BATCH_FOLDER, made).parent,
        write_folder(tmp_path / "f", made),
        tmp_path / "a",
    ]

    for folder in folders:
        monkeypatch.setenv("DEEP500_DATA", str(folder))
        train, _ = cifar10(verify=False)
        np.testing.assert_array_equal(
            train[:]["label"], np.concatenate([np.frombuffer(made[n], np.uint8)[::3073] for n in files.TRAINING_FILES])
        )
    assert [path.name for path in (tmp_path / "a").iterdir()] == [files.ARCHIVE], "the archive was unpacked"


def test_published_files_and_archive_pass_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = contents()
    write_folder(tmp_path / "u", made)
    (tmp_path / "a").mkdir()
    archive = write_archive(tmp_path / "a", published_members(made))
    publish(monkeypatch, made, archive)

    assert len(cifar10(folder=tmp_path / "u")[0]) == 15
    assert len(cifar10(folder=tmp_path / "a")[0]) == 15


def test_nothing_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        cifar10(folder=tmp_path / "nowhere")

    for part in (files.URL, files.ARCHIVE_SHA256, str(tmp_path / "nowhere"), "DEEP500_DATA"):
        assert part in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    made = contents()
    del made["data_batch_3.bin"]
    write_folder(tmp_path, made)
    (tmp_path / "a").mkdir()
    write_archive(tmp_path / "a", published_members(made))

    for folder in (tmp_path, tmp_path / "a"):
        with pytest.raises(DatasetError, match=r"lacks data_batch_3\.bin"):
            cifar10(folder=folder, verify=False)


def test_wrong_checksum_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = contents()
    publish(monkeypatch, made)
    changed = bytearray(made["test_batch.bin"])
    changed[100] ^= 1
    write_folder(tmp_path, made | {"test_batch.bin": bytes(changed)})

    with pytest.raises(DatasetError, match=r"test_batch\.bin is not the published file: its SHA-256 is [0-9a-f]{64}"):
        cifar10(folder=tmp_path)


def test_files_that_are_not_published_are_refused_by_default(tmp_path: Path) -> None:
    write_folder(tmp_path, contents())
    (tmp_path / "a").mkdir()
    write_archive(tmp_path / "a", published_members(contents()))

    with pytest.raises(DatasetError, match=r"data_batch_1\.bin is not the published file.*truncated: 9,219 bytes"):
        cifar10(folder=tmp_path)
    with pytest.raises(DatasetError, match="is not the published archive"):
        cifar10(folder=tmp_path / "a")


@pytest.mark.parametrize("cut", [1, 3072, 3 * RECORD_BYTES])
def test_truncated_file_is_named(tmp_path: Path, cut: int) -> None:
    made = contents()
    write_folder(tmp_path, made | {"data_batch_4.bin": made["data_batch_4.bin"][:-cut]})

    with pytest.raises(DatasetError, match=r"data_batch_4\.bin has [\d,]+ bytes.*truncated"):
        cifar10(folder=tmp_path, verify=False)


def test_label_out_of_range_is_named(tmp_path: Path) -> None:
    made = contents()
    changed = bytearray(made["data_batch_5.bin"])
    changed[RECORD_BYTES] = 10
    write_folder(tmp_path, made | {"data_batch_5.bin": bytes(changed)})

    with pytest.raises(DatasetError, match=r"data_batch_5\.bin has the label 10 in record 1"):
        cifar10(folder=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (("../escaped.bin", b"x"), "leads out of it"),
        (("/tmp/escaped.bin", b"x"), "leads out of it"),
        (("cifar-10-batches-bin/../../data_batch_1.bin", b"x"), "leads out of it"),
        (("cifar-10-batches-bin/data_batch_1.bin", b"x"), "twice"),
    ],
)
def test_archive_with_strange_members_is_refused(tmp_path: Path, member: tuple[str, bytes | str], message: str) -> None:
    write_archive(tmp_path, [*published_members(contents()), member])

    with pytest.raises(DatasetError, match=message):
        cifar10(folder=tmp_path, verify=False)
    assert [path.name for path in tmp_path.iterdir()] == [files.ARCHIVE]


def test_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    made = contents()
    del made["data_batch_1.bin"]
    write_archive(tmp_path, [("cifar-10-batches-bin/data_batch_1.bin", "/etc/passwd"), *published_members(made)])

    with pytest.raises(DatasetError, match="something else than a plain file"):
        cifar10(folder=tmp_path, verify=False)


def test_member_of_the_right_name_elsewhere_is_not_taken(tmp_path: Path) -> None:
    made = contents()
    members = published_members(made)
    members[0] = ("elsewhere/data_batch_1.bin", made["data_batch_1.bin"])
    write_archive(tmp_path, members)

    with pytest.raises(DatasetError, match=r"lacks data_batch_1\.bin"):
        cifar10(folder=tmp_path, verify=False)


@pytest.mark.parametrize("damage", ["no gzip", "cut", "flipped"])
def test_damaged_archive_is_named(tmp_path: Path, damage: str) -> None:
    archive = write_archive(tmp_path, published_members(contents()))
    content = bytearray(archive.read_bytes())
    if damage == "no gzip":
        content = bytearray(b"hello")
    elif damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 0xFF
    archive.write_bytes(content)

    with pytest.raises(DatasetError, match="cifar-10-binary"):
        cifar10(folder=tmp_path, verify=False)


@pytest.mark.parametrize("argument", ["normalize", "verify"])
@pytest.mark.parametrize("value", [1, None, "no"])
def test_switches_are_true_or_false(tmp_path: Path, argument: str, value: Any) -> None:
    with pytest.raises(DatasetError, match="True and False"):
        cifar10(folder=tmp_path, **{argument: value})


def test_published_sums_are_whole() -> None:
    assert set(files.SHA256) == set(NAMES)
    assert all(len(digest) == 64 for digest in (*files.SHA256.values(), files.ARCHIVE_SHA256))
