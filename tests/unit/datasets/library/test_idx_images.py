from __future__ import annotations

import dataclasses
import gzip
import hashlib
import http.server
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.library import _idx_images, mnist
from deep500.datasets.loading import load_dataset
from tests.dataset_files import idx_bytes, pictures, write_idx, write_mnist

NAMES = ["mnist", "fashion_mnist", "kmnist"]


def publish(monkeypatch: pytest.MonkeyPatch, folder: Path, address: str = "http://127.0.0.1:9") -> None:
    """Make the small files in a folder the published ones of MNIST."""
    files = {
        name: dataclasses.replace(
            file,
            addresses=(f"{address}/{file.name}",),
            sha256=hashlib.sha256((folder / file.name).read_bytes()).hexdigest(),
            size_bytes=(folder / file.name).stat().st_size,
        )
        for name, file in mnist.PUBLISHED.files.items()
    }
    monkeypatch.setattr(mnist, "PUBLISHED", dataclasses.replace(mnist.PUBLISHED, files=files))
    monkeypatch.setattr(_idx_images, "_PUBLISHED", (40, 20))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compressed", [False, True])
def test_images_are_read_as_published(tmp_path: Path, name: str, compressed: bool) -> None:
    write_mnist(tmp_path, name=name, compressed=compressed)

    train, test = load_dataset(name, "x", "y", folder=tmp_path, verify=False, normalize=False)

    pixels, labels = pictures(40, (28, 28), 10, 0)
    assert (len(train), len(test), train.sample_shape, train.classes) == (40, 20, (1, 28, 28), 10)
    np.testing.assert_array_equal(train[:]["x"][:, 0], pixels.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(train[:]["y"], labels)


def test_normalised_by_the_training_set(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    plain = load_dataset("mnist", folder=tmp_path, verify=False, normalize=False)[1][:]["input"]
    pixels, _ = pictures(40, (28, 28), 10, 0)
    mean, deviation = round(pixels.mean() / 255, 4), round(pixels.std() / 255, 4)

    read = load_dataset("mnist", folder=tmp_path, verify=False)[1][:]["input"]

    np.testing.assert_array_equal(read, (plain - np.float32(mean)) / np.float32(deviation))


def test_where_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path)
    shutil.copytree(tmp_path / "mnist", tmp_path / "t" / "MNIST" / "raw")
    for folder in (tmp_path, tmp_path / "mnist", tmp_path / "t"):
        assert len(load_dataset("mnist", folder=folder, verify=False)[0]) == 40
    monkeypatch.setenv("DEEP500_DATA", str(tmp_path / "mnist"))
    with pytest.raises(DatasetError, match="MNIST is not there"):  # these files could be any data set's
        load_dataset("mnist", verify=False)
    with pytest.raises(DatasetError, match="Fashion-MNIST is not there"):
        load_dataset("fashion_mnist", folder=tmp_path, verify=False)


def test_only_published_files_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path)
    with pytest.raises(DatasetError, match=r"is not the published file: its SHA-256 is .*verify=False"):
        load_dataset("mnist", folder=tmp_path)
    publish(monkeypatch, tmp_path / "mnist")
    assert len(load_dataset("mnist", folder=tmp_path)[0]) == 40

    write_mnist(tmp_path / "raw", 39, compressed=False)
    with pytest.raises(DatasetError, match="holds 39 images; the published file holds 40"):
        load_dataset("mnist", folder=tmp_path / "raw")


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()

    with pytest.raises(DatasetError, match="t10k-labels-idx1-ubyte"):
        load_dataset("mnist", folder=tmp_path, verify=False, download=False)


def test_labels_that_do_not_fit(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    write_idx(tmp_path / "mnist", "train-labels-idx1-ubyte", np.array([0, 10] * 20, np.uint8))
    with pytest.raises(DatasetError, match=r"train-labels.*label of sample 1 is 10.*0 to 9"):
        load_dataset("mnist", folder=tmp_path, verify=False)
    write_idx(tmp_path / "mnist", "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(DatasetError, match="40 images and 3 labels"):
        load_dataset("mnist", folder=tmp_path, verify=False)


def test_files_that_were_mixed_up_or_cut(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(idx_bytes(np.zeros(40, np.uint8))))
    with pytest.raises(DatasetError, match="no IDX file of uint8 with 3 dimensions"):
        load_dataset("mnist", folder=tmp_path, verify=False)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="cannot be read"):
        load_dataset("mnist", folder=tmp_path, verify=False)


def test_downloading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "server")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "server" / "mnist"))

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        publish(monkeypatch, tmp_path / "server" / "mnist", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("DEEP500_DATA", str(tmp_path / "new"))
        monkeypatch.delenv("DEEP500_OFFLINE")
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(DatasetError, match="turned off"):
            load_dataset("mnist", folder=tmp_path / "mistyped")
        train, _ = load_dataset("mnist")
        server.shutdown()

    assert len(train) == 40
    assert len(list((tmp_path / "new" / "mnist").iterdir())) == 4
    assert not (tmp_path / "mistyped").exists()
    assert len(load_dataset("mnist")[1]) == 20
