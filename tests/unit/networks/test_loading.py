from __future__ import annotations

import gzip
import io
import logging
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import Deep500Error, InvalidNetworkError
from deep500.networks import loading, saving
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


def test_external_data_is_written_and_replaced(tmp_path: Path) -> None:
    network = create_model("mlp", shape=(40,), hidden=(50,))
    path = tmp_path / "network.onnx"
    network.save(path, external_data=True)
    first = [name for name in os.listdir(tmp_path) if name.endswith(".data")]
    assert len(first) == 1
    assert path.stat().st_size < 4000
    assert_same(network, Network.load(path))
    network.feed_tensor(network.get_params()[0], np.zeros((50, 40), np.float32))
    network.save(path, external_data=True)
    second = [name for name in os.listdir(tmp_path) if name.endswith(".data")]
    assert len(second) == 1
    assert first != second
    assert_same(network, Network.load(path))
    network.save(path)
    assert os.listdir(tmp_path) == ["network.onnx"]
    assert_same(network, Network.load(path))


def test_what_is_too_large_for_one_file_goes_to_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "INLINE_LIMIT", 5000)
    network = create_model("mlp", shape=(40,), hidden=(50,))
    network.save(tmp_path / "network.onnx")

    assert len(os.listdir(tmp_path)) == 2
    assert_same(network, Network.load(tmp_path / "network.onnx"))


@pytest.mark.parametrize("failing", [1, 2])
def test_failing_write_of_two_files_keeps_the_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    network = create_model("mlp", shape=(40,), hidden=(50,))
    path = tmp_path / "network.onnx"
    network.save(path, external_data=True)
    before = sorted(os.listdir(tmp_path))
    replace, calls = os.replace, []

    def full(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidNetworkError, match="No space left"):
        network.save(path, external_data=True)

    assert sorted(os.listdir(tmp_path)) == before
    assert_same(network, Network.load(path))


def test_large_tensors_are_set_aside_and_put_back(tmp_path: Path) -> None:
    network = create_model("mlp", shape=(400,), hidden=(300,), seed=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    for external_data in (False, True):
        network.save(tmp_path / "network.onnx", external_data=external_data)
        loaded = Network.load(tmp_path / "network.onnx")
        assert_same(network, loaded)
        onnx.checker.check_model(loaded.to_proto(), full_check=True)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT4, TensorProto.BFLOAT16])
def test_external_data_of_other_types(folder: Path, kind: int) -> None:
    proto = external("weights")
    proto.graph.initializer[0].data_type = kind
    proto.graph.initializer[0].external_data.add(key="offset", value="2")
    del proto.graph.node[0].input[:]
    proto.graph.node[0].input.extend(["w", "w"])
    proto.graph.output[0].type.tensor_type.elem_type = kind
    del proto.graph.output[0].type.tensor_type.shape.dim[0]
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    if kind == TensorProto.BFLOAT16:
        assert Network.load(folder / "model.onnx").parameters
    else:  # 18 bytes of 16, and a type that Add does not take
        with pytest.raises(InvalidNetworkError):
            Network.load(folder / "model.onnx")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("offset", "-1"), ("offset", "4"), ("offset", "99999999999999999999"), ("offset", "x"), ("length", "12"),
        ("length", "-16"), ("location", "a\0b"), ("location", "..\\secret"), ("location", "./../secret"),
    ],
)  # fmt: skip
def test_external_data_outside_its_file_is_refused(folder: Path, key: str, value: str) -> None:
    proto = external("weights")
    if key == "location":
        proto.graph.initializer[0].external_data[0].value = value
    else:
        proto.graph.initializer[0].external_data.add(key=key, value=value)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())

    with pytest.raises(InvalidNetworkError, match=r"tensor 'w'"):
        Network.load(folder / "model.onnx")


def test_folder_that_links_out_is_refused(folder: Path) -> None:
    (folder / "inner").symlink_to("..")
    (folder / "model.onnx").write_bytes(external("inner/secret").SerializeToString())

    with pytest.raises(InvalidNetworkError, match="leads out of the model's folder"):
        Network.load(folder / "model.onnx")


def test_open_files_are_read(tmp_path: Path, folder: Path) -> None:
    network = trained_network()
    network.save(tmp_path / "network.onnx")
    with open(tmp_path / "network.onnx", "rb") as file:
        assert_same(network, Network.load(file))
    assert_same(network, Network.load(io.BytesIO((tmp_path / "network.onnx").read_bytes())))
    (folder / "model.onnx").write_bytes(external("weights").SerializeToString())
    with open(folder / "model.onnx", "rb") as file:
        assert Network.load(file).parameters
    with open(folder / "model.onnx", "rb") as file:
        content = io.BytesIO(file.read())
    with pytest.raises(InvalidNetworkError, match="Load it by the path of its file"):
        Network.load(content)
    with (
        open(tmp_path / "network.onnx", encoding="latin-1") as text,
        pytest.raises(InvalidNetworkError, match="binary"),
    ):
        Network.load(text)
    with pytest.raises(InvalidNetworkError, match="closed file"):
        Network.load(file)


def test_sizes_are_limited(folder: Path) -> None:
    proto = external("weights")
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    size = proto.ByteSize()

    assert Network.load(folder / "model.onnx", max_size_bytes=size + 16).parameters
    for source, limit in [(folder / "model.onnx", size + 15), (folder / "model.onnx", 10), (b"x" * 20, 10)]:
        with pytest.raises(InvalidNetworkError, match=f"more than max_size_bytes={limit} allows"):
            Network.load(source, max_size_bytes=limit)
    with pytest.raises(InvalidNetworkError, match="max_size_bytes was given as 'x'"):
        Network.load(folder / "model.onnx", max_size_bytes="x")  # type: ignore[arg-type]


def test_file_beyond_protobufs_limit_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "large.onnx", "wb") as file:
        file.truncate(2**31 + 5)

    with pytest.raises(InvalidNetworkError, match=r"protobuf, ONNX' format, holds at most 2,147,483,647 in one file"):
        Network.load(tmp_path / "large.onnx")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"x", mtime=0), "compressed by gzip"),
        (pickle.dumps([1, 2]), "a Python pickle"),
        (b"PK\x03\x04" + b"\0" * 40, "a ZIP archive"),
        (PNG, "a picture"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ],
)
def test_other_kinds_of_files_are_named(content: bytes, kind: str) -> None:
    with pytest.raises(InvalidNetworkError, match=f"The given model is not an ONNX file: it is {kind}"):
        Network.load(content)


def broken(change: Any) -> onnx.ModelProto:
    proto = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"], name="sum")],
        [value("x", "N", 4)],
        [value("y", "N", 4)],
        {"w": np.ones(4, np.float32)},
    )
    change(proto)
    return proto


def set_field(path: str, setting: Any) -> Any:
    def change(proto: Any) -> None:
        *parts, last = path.split(".")
        for part in parts:
            proto = proto[int(part)] if part.isdigit() else getattr(proto, part)
        setattr(proto, last, setting)

    return change


def nested(depth: int) -> Any:
    def change(proto: onnx.ModelProto) -> None:
        graph = proto.graph
        for _ in range(depth):
            node = graph.node.add(op_type="If", input=["c"], output=["z"])
            attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
            graph = attribute.g
            graph.name = "inner"

    return change


BROKEN = {
    "bomb": (lambda p: p.graph.initializer[0].dims.__setitem__(0, 10**12), "tensor 'w' holds 16 bytes"),
    "huge": (lambda p: p.graph.initializer[0].dims.__setitem__(0, 2**62), "tensor 'w' has the shape"),
    "negative": (lambda p: p.graph.initializer[0].dims.__setitem__(0, -4), "tensor 'w' has the shape"),
    "overflow": (lambda p: p.graph.initializer[0].dims.extend([2**32, 2**32]), "tensor 'w' holds 16 bytes"),
    "short": (set_field("graph.initializer.0.raw_data", b"12"), "tensor 'w' holds 2 bytes"),
    "type": (set_field("graph.initializer.0.data_type", 99), "tensor 'w' has element type 99"),
    "mixed": (lambda p: p.graph.initializer[0].float_data.append(1), "Tensor|tensor"),
    "texts": (set_field("graph.initializer.0.data_type", TensorProto.STRING), "tensor 'w' holds 0 texts"),
    "twice": (lambda p: p.graph.initializer.add().CopyFrom(p.graph.initializer[0]), "two stored tensors named 'w'"),
    "inputs": (lambda p: p.graph.input.add().CopyFrom(p.graph.input[0]), "two inputs named 'x'"),
    "outputs": (lambda p: p.graph.output.add().CopyFrom(p.graph.output[0]), "two outputs named 'y'"),
    "nameless": (set_field("graph.input.0.name", ""), "an input without a name|a input without a name"),
    "declared": (lambda p: p.graph.input.append(value("w", 5)), r"stored with shape \[4\] and declared as \[5\]"),
    "declared type": (
        lambda p: p.graph.input.append(value("w", 4, element=TensorProto.INT8)), "stored as FLOAT and declared as INT8"
    ),
    "dimension": (set_field("graph.input.0.type.tensor_type.shape.dim.1.dim_value", -3), "'x' is declared with"),
    "imports": (lambda p: p.opset_import.add(domain="", version=11), "imports domain 'ai.onnx' in the versions"),
    "no imports": (lambda p: p.ClearField("opset_import"), "opset"),
    "version": (set_field("opset_import.0.version", 2**40), "imports domain 'ai.onnx' in version"),
    "nan": (
        lambda p: p.graph.node.append(helper.make_node("Elu", ["y"], ["z"], name="elu", alpha=float("nan"))),
        r"attribute 'alpha' of node 'elu' \(ai.onnx::Elu\) is not a number",
    ),
    "cycle": (lambda p: p.graph.node.insert(0, helper.make_node("Relu", ["y"], ["x2"])), "sorted"),
    "self": (lambda p: p.graph.node[0].input.__setitem__(1, "y"), "sorted|is not output of any previous"),
    "same output": (lambda p: p.graph.node.add().CopyFrom(p.graph.node[0]), "SSA|output names"),
    "operator": (set_field("graph.node.0.op_type", "Addd"), "No Op registered for Addd"),
    "attribute": (
        lambda p: p.graph.node.append(
            helper.make_node("LayerNormalization", ["y", "w"], ["z"], name="norm", nothing=1)
        ),
        "has the attribute 'nothing'|Unrecognized attribute: nothing",
    ),
    "deep": (nested(60), "nested 33 deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_models_are_refused_by_name(name: str) -> None:
    change, message = BROKEN[name]

    with pytest.raises(InvalidNetworkError, match=message):
        Network.load(broken(change))


def test_texts_are_decoded_once() -> None:
    texts = np.array(["ä", ""], object)
    proto = make_model(
        [helper.make_node("StringConcat", ["x", "t"], ["y"])],
        [value("x", 2, element=TensorProto.STRING)],
        [value("y", 2, element=TensorProto.STRING)],
    )
    proto.graph.initializer.append(helper.make_tensor("t", TensorProto.STRING, [2], ["ä".encode(), b""]))
    network = Network.load(proto)

    assert network.fetch_tensors(["t"])[0].tolist() == texts.tolist()
    assert network.program(frozenset({"x"})).nodes[0].constants[1].tolist() == texts.tolist()
    assert Network.load(network.to_proto()).fetch_tensors(["t"])[0].tolist() == texts.tolist()
    network.feed_tensor("t", np.array(["b", "ß"], object))
    assert Network.load(network.to_proto()).fetch_tensors(["t"])[0].tolist() == ["b", "ß"]


def with_functions(bodies: list[list[str]], called: str) -> onnx.ModelProto:
    """Return a model that calls a function; function number i calls what its list names, one after the other."""
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("mine", 1)]
    functions = []
    for number, calls in enumerate(bodies):
        names = ["x", *(f"t{index}" for index in range(len(calls) - 1)), "y"]
        nodes = [
            helper.make_node(call, [names[i]], [names[i + 1]], domain="mine" if call[1:].isdigit() else "")
            for i, call in enumerate(calls)
        ]
        functions.append(helper.make_function("mine", f"F{number}", ["x"], ["y"], nodes, imports))
    graph = helper.make_graph(
        [helper.make_node(called, ["x"], ["y"], domain="mine")], "g", [value("x", 2)], [value("y", 2)]
    )
    return helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=10)


def test_functions_that_stand_for_too_many_nodes_are_refused_before_anybody_writes_them_out() -> None:
    doubling = [["Relu"], *([f"F{i}", f"F{i}"] for i in range(40))]

    with pytest.raises(InvalidNetworkError, match=r"function mine::F\d+ stands for [\d,]+ nodes; accepted are up to"):
        Network.load(with_functions(doubling, "F40"))
    small = Network.load(with_functions(doubling[:6], "F5"))
    assert [node.op_type for node in small.model.graph] == ["Relu"] * 32


def test_functions_that_call_themselves_are_refused() -> None:
    with pytest.raises(InvalidNetworkError, match="recursive"):
        Network.load(with_functions([["F1"], ["F0"]], "F0"))


def test_shapes_that_outputs_lack_are_inferred_and_others_named() -> None:
    proto = relu_model("batch", 2)
    proto.graph.output[0].type.tensor_type.ClearField("shape")

    assert str(Network.load(proto).outputs["y"]) == "float32[batch, 2]"
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InvalidNetworkError, match=r"input 'x' is declared without a shape\. Declare one"):
        Network.load(proto)


def test_empty_and_endless_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_PROTOBUF_LIMIT", 1000)

    with pytest.raises(InvalidNetworkError, match="is not an ONNX file: it is empty"):
        Network.load(os.devnull)
    if Path("/dev/zero").exists():
        with pytest.raises(InvalidNetworkError, match="has 1,001 bytes"):
            Network.load("/dev/zero")
