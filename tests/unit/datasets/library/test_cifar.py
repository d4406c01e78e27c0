from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.library import cifar10 as cifar10_module
from deep500.datasets.library import cifar100 as cifar100_module
from deep500.datasets.library._cifar import Version, records
from deep500.datasets.loading import load_dataset
from tests.dataset_files import (
    cifar10_files,
    cifar100_files,
    write_cifar10,
    write_cifar100,
    write_files,
    write_tar,
)

cifar10 = functools.partial(load_dataset, "cifar10")
cifar100 = functools.partial(load_dataset, "cifar100")

RECORD_BYTES = 3073
CASES = [
    (cifar10, cifar10_module, "BINARY", lambda: cifar10_files("binary", 3)),
    (cifar10, cifar10_module, "PYTHON", lambda: cifar10_files("python", 3)),
    (cifar100, cifar100_module, "BINARY", lambda: cifar100_files("binary", 30, 10)),
    (cifar100, cifar100_module, "PYTHON", lambda: cifar100_files("python", 30, 10)),
]
IDS = ["cifar10-binary", "cifar10-python", "cifar100-binary", "cifar100-python"]
Load = Callable[..., Any]


def published(module: Any, name: str) -> Version:
    version: Version = getattr(module, name)
    return version


def short(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {name.rpartition("/")[2]: content for name, content in contents.items()}


def publish(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, contents: dict[str, bytes], archive: Path | None = None
) -> Version:
    """Make small files the published ones."""
    version = published(module, name)
    digests = {n: hashlib.new(version.digest, c).hexdigest() for n, c in short(contents).items()}
    remote = version.archive
    if archive is not None:
        remote = dataclasses.replace(remote, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    sizes = {n: len(c) for n, c in short(contents).items()} if version.published_bytes else {}
    changed = dataclasses.replace(version, digests=digests, archive=remote, published_bytes=sizes)
    monkeypatch.setattr(module, name, changed)
    return changed


@pytest.fixture(autouse=True)
def modules() -> None:
    # A plug-in's module has the name of its function, which the package does not export.
    assert not callable(cifar10_module)
    assert not callable(cifar100_module)


def test_records_are_read_as_published(tmp_path: Path) -> None:
    made = short(cifar10_files("binary", 3))
    write_cifar10(tmp_path, 3)

    train, test = cifar10("x", "y", folder=tmp_path, normalize=False, verify=False)

    assert (len(train), len(test)) == (15, 3)
    raw = np.frombuffer(made["data_batch_2.bin"], np.uint8).reshape(3, RECORD_BYTES)
    sample = train[4]  # the second record of the second file
    assert sample["y"] == raw[1, 0]
    np.testing.assert_array_equal(sample["x"], raw[1, 1:].reshape(3, 32, 32).astype(np.float32) / np.float32(255))
    # The green value of row 2, column 5, by the published description.
    assert sample["x"][1, 2, 5] == np.float32(raw[1, 1 + 1024 + 2 * 32 + 5]) / np.float32(255)
    np.testing.assert_array_equal(test[:]["y"], np.frombuffer(made["test_batch.bin"], np.uint8)[::RECORD_BYTES])


def test_both_versions_hold_the_same(tmp_path: Path) -> None:
    for write, load in ((write_cifar10, cifar10), (write_cifar100, cifar100)):
        read = []
        for version in ("binary", "python"):
            write(tmp_path / version / load.args[0], version=version)
            read.append(load(folder=tmp_path / version / load.args[0], verify=False))
        for one, other in zip(*read):
            assert len(one) == len(other)
            np.testing.assert_array_equal(one[:]["input"], other[:]["input"])
            np.testing.assert_array_equal(one[:]["label"], other[:]["label"])


def test_fine_and_coarse_labels(tmp_path: Path) -> None:
    write_cifar100(tmp_path, 200, 100)
    fine, coarse = (cifar100(folder=tmp_path, verify=False, labels=labels)[0] for labels in ("fine", "coarse"))

    assert (fine.classes, coarse.classes) == (100, 20)
    np.testing.assert_array_equal(fine[:]["label"] % 20, coarse[:]["label"])
    with pytest.raises(DatasetError, match="'fine' "):
        cifar100(folder=tmp_path, labels="other")


def test_normalising_is_per_channel(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    plain = cifar10(folder=tmp_path, normalize=False, verify=False)[0][:]["input"]
    mean = np.array([0.4914, 0.4822, 0.4465], np.float32).reshape(3, 1, 1)
    deviation = np.array([0.2470, 0.2435, 0.2616], np.float32).reshape(3, 1, 1)

    normalised = cifar10(folder=tmp_path, verify=False)[0][:]["input"]

    np.testing.assert_array_equal(normalised, (plain - mean) / deviation)


def test_the_statistics_of_cifar100_are_those_of_its_training_set(tmp_path: Path) -> None:
    write_cifar100(tmp_path)

    values = cifar100(folder=tmp_path, verify=False)[0][:]["input"].astype(np.float64)

    np.testing.assert_allclose(values.mean(axis=(0, 2, 3)), 0, atol=1e-3)
    np.testing.assert_allclose(values.std(axis=(0, 2, 3)), 1, atol=1e-3)


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_folder_archive_and_the_files_themselves_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Load, module: Any, name: str, contents: Any
) -> None:
    made = contents()
    archive_name = published(module, name).archive.name
    folders = [write_files(tmp_path / "u", made, None), write_files(tmp_path / "f", short(made), None)]
    readme = {"readme.html": b"hello"}
    folders.append(write_files(tmp_path / "a", {**readme, **made}, archive_name))
    publish(monkeypatch, module, name, made, tmp_path / "a" / archive_name)

    read = []
    for folder in folders:
        monkeypatch.setenv("DEEP500_DATA", str(folder))
        read.append(load()[0][:]["label"])

    assert all(np.array_equal(labels, read[0]) for labels in read)
    assert [path.name for path in (tmp_path / "a").iterdir()] == [archive_name], "the archive was unpacked"


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_files_and_archives_that_are_not_the_published_ones(
    tmp_path: Path, load: Load, module: Any, name: str, contents: Any
) -> None:
    version = published(module, name)
    write_files(tmp_path / "u", contents(), None)
    write_files(tmp_path / "a", contents(), version.archive.name)

    with pytest.raises(DatasetError, match=r"is not the published file: its (SHA-256|MD5) is") as caught:
        load(folder=tmp_path / "u")
    assert "verify=False" in str(caught.value)
    with pytest.raises(DatasetError, match="is not the published archive: its SHA-256 is"):
        load(folder=tmp_path / "a")


def test_a_truncated_file_says_how_much_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cifar10_files("binary", 3)
    publish(monkeypatch, cifar10_module, "BINARY", made)
    made["cifar-10-batches-bin/data_batch_3.bin"] = made["cifar-10-batches-bin/data_batch_3.bin"][:-RECORD_BYTES]
    write_files(tmp_path, made, None)

    with pytest.raises(DatasetError, match=r"data_batch_3\.bin .*truncated: 6,146 bytes instead of 9,219"):
        cifar10(folder=tmp_path)


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_truncated_files_are_found_without_checksums_too(
    tmp_path: Path, load: Load, module: Any, name: str, contents: Any
) -> None:
    made = contents()
    first = next(iter(made))
    for number, size in enumerate((0, 1, 100, len(made[first]) // 2 + 1, len(made[first]) - 1)):
        write_files(tmp_path / str(number), {**made, first: made[first][:size]}, None)
        with pytest.raises(DatasetError, match=f"{first.rpartition('/')[2]} .*truncated"):
            load(folder=tmp_path / str(number), verify=False)


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_truncated_archives(tmp_path: Path, load: Load, module: Any, name: str, contents: Any) -> None:
    archive = published(module, name).archive.name
    whole = (write_files(tmp_path, contents(), archive) / archive).read_bytes()
    for size in (0, 1, 20, len(whole) // 2, len(whole) - 4):
        (tmp_path / archive).write_bytes(whole[:size])
        with pytest.raises(DatasetError, match="cannot be read"):
            load(folder=tmp_path, verify=False)


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_nothing_there_says_how_to_get_it(tmp_path: Path, load: Load, module: Any, name: str, contents: Any) -> None:
    version = published(module, "BINARY")
    (tmp_path / "here").mkdir()
    for folder, reason in (("nowhere", "turned off"), ("here", "DEEP500_OFFLINE")):
        with pytest.raises(DatasetError, match=reason) as caught:
            load(folder=tmp_path / folder)
        for part in (version.archive.addresses[0], version.archive.sha256, str(tmp_path / folder), "DEEP500_DATA"):
            assert part in str(caught.value)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("load", "module", "name", "contents"), CASES, ids=IDS)
def test_missing_files_are_named(tmp_path: Path, load: Load, module: Any, name: str, contents: Any) -> None:
    made = contents()
    gone = list(made)[-1]
    del made[gone]
    version = published(module, name)
    write_files(tmp_path / "u", made, None)
    write_files(tmp_path / "a", made, version.archive.name)

    for folder in (tmp_path / "u", tmp_path / "a"):
        with pytest.raises(DatasetError, match=f"lacks {gone.rpartition('/')[2]}"):
            load(folder=folder, verify=False)


@pytest.mark.parametrize("member", ["/etc/passwd", "../outside", "cifar-10-batches-bin/../../outside"])
def test_members_that_lead_out_are_refused(tmp_path: Path, member: str) -> None:
    members: list[tuple[str, bytes | str]] = [(member, b"x"), *cifar10_files().items()]
    write_tar(tmp_path / "cifar-10-binary.tar.gz", members)

    with pytest.raises(DatasetError, match="leads out of it"):
        cifar10(folder=tmp_path, verify=False)
    assert len(list(tmp_path.iterdir())) == 1


def test_links_and_doubles_are_refused(tmp_path: Path) -> None:
    made = list(cifar10_files().items())
    for number, members in enumerate(([(made[0][0], "/etc/passwd"), *made[1:]], [*made, made[0]])):
        write_tar(tmp_path / str(number) / "cifar-10-binary.tar.gz", members)  # type: ignore[arg-type]
        with pytest.raises(DatasetError, match=r"as something else than a plain file|twice"):
            cifar10(folder=tmp_path / str(number), verify=False)


def test_labels_out_of_range() -> None:
    content = bytes([3]) + bytes(3072) + bytes([10]) + bytes(3072)

    with pytest.raises(DatasetError, match="has the label 10 in record 1; labels are 0 to 9"):
        records("CIFAR-10", "a.bin", content, label_bytes=1, label_at=0, classes=10)


class Harm:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("harm"),))


class EvilArray:
    def __reduce__(self) -> Any:
        return (np.load, (io.BytesIO(b""),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"data": Harm()}), "names pathlib.Path"),
        (b"cos\nsystem\n(S'touch harm'\ntR.", "names os.system, which no published file does; nothing of it was run"),
        (b"c__builtin__\neval\n(S'1'\ntR.", "builtin"),
        (pickle.dumps({"data": EvilArray()}), "names numpy"),
        (pickle.dumps([1, 2]), "holds no dictionary"),
        (pickle.dumps({"data": [1], "labels": [1]}), "its data are no array"),
        (pickle.dumps({"labels": [1]}), "has no data"),
        (pickle.dumps({"data": np.zeros((1, 3072), np.uint8)}), "has no labels"),
        (pickle.dumps({"data": np.zeros((1, 5), np.uint8), "labels": [1]}), r"shape \(1, 5\)"),
        (pickle.dumps({"data": np.zeros((1, 3072)), "labels": [1]}), "not bytes"),
        (pickle.dumps({"data": np.zeros((2, 3072), np.uint8).T.copy().T, "labels": [1, 2]}), "order of rows"),
        (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [1, 2]}), "1 images and 2 labels"),
        (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}), "label 10 in record 0"),
        (pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": ["1"]}), "whole numbers"),
        (b"P1\n.", "outside of it"),
        (b"", "truncated"),
        (b"<html>", "truncated"),
    ],
)
def test_pickles_that_are_none_of_the_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made = cifar10_files("python", 2)
    write_files(tmp_path, {**made, "cifar-10-batches-py/data_batch_4": content}, None)

    with pytest.raises(DatasetError, match=message) as caught:
        cifar10(folder=tmp_path, verify=False)
    assert "data_batch_4" in str(caught.value)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_python_3_are_read(tmp_path: Path, protocol: int) -> None:
    pixels = np.arange(2 * 3072, dtype=np.uint64).astype(np.uint8).reshape(2, 3072)
    if protocol == 5:
        pixels = np.frombuffer(pixels.tobytes(), np.uint8).reshape(2, 3072)
    content = pickle.dumps({b"data": pixels, b"labels": [3, 4]}, protocol)
    write_files(tmp_path, dict.fromkeys(cifar10_files("python"), content), None)

    if protocol == 5:  # a form of arrays that no published file has
        with pytest.raises(DatasetError, match="_frombuffer"):
            cifar10(folder=tmp_path, verify=False)
        return
    train, _ = cifar10(folder=tmp_path, verify=False, normalize=False)
    np.testing.assert_array_equal(np.rint(train[:2]["input"].reshape(2, -1) * 255), pixels)


@pytest.mark.parametrize("argument", ["normalize", "verify", "download"])
def test_arguments_that_are_not_accepted(tmp_path: Path, argument: str) -> None:
    with pytest.raises(DatasetError, match=argument):
        cifar10(folder=tmp_path, **{argument: 1})


def test_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatasetError, match="which is a file"):
        cifar10(folder=tmp_path / "file")
