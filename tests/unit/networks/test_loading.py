from __future__ import annotations

import logging
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import Deep500Error, InvalidNetworkError
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from tests.unit.networks.support import batch_normalization, make_model, relu_model, value

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"


def trained_network() -> Network:
    """Return a network with parameters, states, constants and two losses."""
    network = create_model("simple_cnn", shape=(1, 8, 8), classes=4, widths=(4, 6), seed=5)
    network.append_loss("SoftmaxCrossEntropyLoss")
    network.append_loss("MeanSquaredError", label="target", name="distance")
    network.feed_tensor("norms.0.running_mean", np.arange(4, dtype=np.float32))
    return network


def assert_same(one: Network, other: Network) -> None:
    for part in ("inputs", "outputs", "losses", "parameters", "states", "constants"):
        assert list(getattr(one, part).items()) == list(getattr(other, part).items()), part
    assert one.name == other.name
    assert one.weights_hash() == other.weights_hash()
    assert one.summary() == other.summary()


@pytest.mark.parametrize("kind", ["path", "text", "bytes", "proto"])
@pytest.mark.parametrize("times", [1, 2])
def test_round_trip(tmp_path: Path, kind: str, times: int) -> None:
    network = loaded = trained_network()
    path = tmp_path / "network.onnx"
    for _ in range(times):
        loaded.save(path)
        sources = {"path": path, "text": str(path), "bytes": path.read_bytes(), "proto": loaded.to_proto()}
        loaded = Network.load(sources[kind])

    assert_same(network, loaded)
    assert os.listdir(tmp_path) == ["network.onnx"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_round_trip_of_dtypes(dtype: str) -> None:
    network = create_model("simple_cnn", shape=(1, 8, 8), widths=(4,), dtype=dtype)

    assert_same(network, Network.load(network.to_proto()))


def test_model_given_is_not_changed() -> None:
    proto = batch_normalization(opset=15)
    before = proto.SerializeToString()
    network = Network.load(proto)
    network.feed_tensor("scale", np.zeros(3, np.float32))
    network.append_loss("MeanSquaredError")

    assert proto.SerializeToString() == before


def test_saving_replaces_and_respects_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(b"older")
    mask = os.umask(0o027)
    try:
        trained_network().save(path)
    finally:
        os.umask(mask)

    assert path.stat().st_mode & 0o777 == 0o640
    assert Network.load(path).parameters


@pytest.mark.parametrize(
    "target", ["folder", "missing/network.onnx", "file/network.onnx", "a\0b", "x" * 300, "", 5, None]
)
def test_unwritable_target_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")

    with pytest.raises(InvalidNetworkError, match="The network cannot be written to"):
        create_model("mlp", shape=(2,), hidden=()).save(target)

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


def test_failing_write_keeps_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(b"older")

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidNetworkError, match="No space left"):
        create_model("mlp", shape=(2,), hidden=()).save(path)

    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == ["network.onnx"]


@pytest.mark.parametrize("suffix", ["onnx", "pb", "json", "textproto", "pbtxt", "onnxtxt"])
@pytest.mark.parametrize("content", [b"", b"no model", PNG, b"\xff" * 100], ids=["empty", "text", "png", "ones"])
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_what_is_no_onnx_file_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"network.{suffix}"
    path.write_bytes(content)

    with pytest.raises(InvalidNetworkError, match=r"is not an ONNX file|is not valid ONNX") as caught:
        Network.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("length", [1, 10, 1000, -1000, -1])
def test_truncated_file_is_refused(length: int) -> None:
    data = trained_network().to_proto().SerializeToString()

    with pytest.raises(InvalidNetworkError, match="The given model is not"):
        Network.load(data[:length])


@pytest.mark.parametrize("name", ["missing.onnx", "folder", "", "a\0b"])
def test_unreadable_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()

    with pytest.raises(InvalidNetworkError, match="The file '"):
        Network.load(name)


@pytest.mark.parametrize("source", [5, None, bytearray(b""), ["x"], create_model])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(InvalidNetworkError, match=f"given as {type(source).__name__}; accepted are a path"):
        Network.load(source)


def test_invalid_models_are_refused_by_the_checker() -> None:
    undefined = make_model([helper.make_node("Relu", ["nothing"], ["y"])], [value("x", 2)], [value("y", 2)])
    unknown = make_model([helper.make_node("Relux", ["x"], ["y"])], [value("x", 2)], [value("y", 2)])
    contradiction = make_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", 2)], [value("y", 3)])

    for proto in (undefined, unknown, contradiction, onnx.ModelProto()):
        with pytest.raises(InvalidNetworkError, match="is not valid ONNX"):
            Network.load(proto)


def test_names_that_are_not_utf8_are_refused() -> None:
    data = relu_model("batch", 2).SerializeToString()

    with pytest.raises(InvalidNetworkError, match=r"the text b'b\\xfftch' is not UTF-8"):
        Network.load(data.replace(b"batch", b"b\xfftch"))


def external(location: str) -> onnx.ModelProto:
    """Return a model whose weight is four numbers in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    proto = make_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", "N", 4)], [value("y", "N", 4)])
    proto.graph.initializer.append(tensor)
    return proto


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model's weight, in a folder with a secret, which is the working folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (tmp_path / "secret").write_bytes(np.full(4, 42, np.float32).tobytes())
    (folder / "link").symlink_to("../secret")
    monkeypatch.chdir(tmp_path)
    return folder


def test_external_data_beside_the_file_is_read(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(external("weights").SerializeToString())
    network = Network.load(folder / "model.onnx")

    assert network.fetch_tensors(["w"])[0].tolist() == [0, 1, 2, 3]
    (folder / "weights").unlink()  # it is in memory
    assert Network.load(network.to_proto()).fetch_tensors(["w"])[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "link", "missing", "", "x/../../secret", "."])
def test_external_data_that_leaves_the_folder_is_refused(folder: Path, location: str) -> None:
    (folder / "model.onnx").write_bytes(external(location).SerializeToString())

    with pytest.raises(InvalidNetworkError):
        Network.load(folder / "model.onnx")


@pytest.mark.parametrize("location", ["secret", "../secret", "model/weights", "missing"])
def test_model_without_a_file_reads_no_other_file(folder: Path, location: str) -> None:
    for source in (external(location), external(location).SerializeToString()):
        with pytest.raises(InvalidNetworkError):
            Network.load(source)


def positions_outside_weights(proto: onnx.ModelProto, data: bytes) -> list[int]:
    """Return where a file's structure is: nearly all of its bytes are weights, of which any value is valid."""
    inside: set[int] = set()
    for tensor in proto.graph.initializer:
        start = data.find(tensor.raw_data)
        inside.update(range(start, start + len(tensor.raw_data)))
    return [position for position in range(len(data)) if position not in inside]


def mutated(data: bytes, structure: list[int], seed: int) -> bytes:
    """Cut a file off, flip bits of it, or replace bytes of it; three times of four in its structure."""
    generator = random.Random(seed)
    if seed % 5 == 0:
        return data[: generator.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 2, 8])):
        position = generator.choice(structure if seed % 4 else range(len(data)))
        changed[position] = generator.randrange(256) if seed % 2 else changed[position] ^ (1 << generator.randrange(8))
    return bytes(changed)


def test_mutated_files_are_read_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    network = create_model("lenet", shape=(1, 4, 4), classes=2)
    network.append_loss("SoftmaxCrossEntropyLoss")
    proto = network.to_proto()
    data = proto.SerializeToString()
    structure = positions_outside_weights(proto, data)
    refused = 0
    for seed in range(300):
        try:
            loaded = Network.load(mutated(data, structure, seed))
            loaded.weights_hash()
            loaded.summary()
            loaded.train().program(frozenset(loaded.inputs))
        except Deep500Error:
            refused += 1

    assert 100 < refused < 290
