from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from deep500.core.errors import Deep500Error
from deep500.measure.workload import open_workload, parse_workload
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.workloads._networks import (
    ModelSetup,
    counted_flops,
    model_setup,
    output_bytes,
    structure_hash,
)

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def setup(text: str) -> ModelSetup:
    return model_setup(parse_workload(text))


def refusal(text: str) -> str:
    with pytest.raises(Deep500Error) as caught:
        setup(text)
    return str(caught.value)


def forms(made: ModelSetup) -> dict[str, str]:
    return {name: str(descriptor) for name, descriptor in made.inputs.items()}


def save(path: Path, inputs: dict[str, Any], nodes: list[Any], outputs: dict[str, Any]) -> str:
    """Write a model; inputs and outputs are pairs of element type and shape by name."""
    typed = [[oh.make_tensor_value_info(n, *kind) for n, kind in part.items()] for part in (inputs, outputs)]
    imports = [oh.make_opsetid("", 23), oh.make_opsetid("mine", 1)]
    model = oh.make_model(oh.make_graph(nodes, "graph", *typed), opset_imports=imports, ir_version=10)
    onnx.save(model, path)
    return str(path)


@pytest.fixture
def sequence(tmp_path: Path) -> str:
    """A file of a network with two symbolic sizes and two inputs."""
    nodes = [oh.make_node("Add", ["x", "y"], ["z"], name="add")]
    kinds = {name: (FLOAT, ["n", "length", 3]) for name in "xyz"}
    return save(tmp_path / "sequence.onnx", {n: kinds[n] for n in "xy"}, nodes, {"z": kinds["z"]})


# --- models by name ---------------------------------------------------------------------------------------------------


def test_training_step_is_the_default() -> None:
    made = setup("model:lenet")

    assert forms(made) == {"input": "float32[64, 1, 28, 28]", "label": "int64[64]"}
    assert (made.name, made.loss, made.batch_size, made.dataset) == ("lenet", "loss", 64, None)
    assert made.training is not None
    assert (made.training.optimizer, made.training.learning_rate, made.training.is_native) == ("momentum", 1e-3, True)
    assert made.network.weights_hash() == create_model("lenet").weights_hash()
    assert made.batches.io == "synthetic, in memory"


def test_minibatches_differ_and_hold_every_class() -> None:
    batches = setup("model:mlp,batch_size=200,classes=4,shape=3").batches

    eight = list(itertools.islice(batches.endless(), 9))

    assert len({batch["input"].tobytes() for batch in eight}) == 8
    assert eight[8] is eight[0]
    assert set(eight[0]["label"]) == {0, 1, 2, 3}


def test_inference_needs_neither_labels_nor_loss() -> None:
    made = setup("model:lenet,mode=inference,batch_size=2")

    assert forms(made) == {"input": "float32[2, 1, 28, 28]"}
    assert (made.loss, made.training, list(made.network.losses)) == (None, None, [])


def test_options_reach_model_and_training() -> None:
    made = setup(
        "model:resnet,depth=8,width=4,shape=3x8x8,classes=5,dtype=float64,seed=3,batch_size=7,optimizer=adam,"
        "learning_rate=0.5,native=False"
    )

    expected = create_model("resnet", shape=(3, 8, 8), classes=5, dtype="float64", seed=3, depth=8, width=4)
    assert made.network.weights_hash() == expected.weights_hash()
    assert forms(made) == {"input": "float64[7, 3, 8, 8]", "label": "int64[7]"}
    assert made.arguments == {"depth": 8, "width": 4}
    assert made.training is not None
    assert (made.training.optimizer, made.training.learning_rate, made.training.is_native) == ("adam", 0.5, False)


def test_regression_is_fed_targets_like_its_outputs() -> None:
    made = setup("model:mlp,loss=MeanSquaredError,classes=3,shape=2,batch_size=4")

    assert forms(made) == {"input": "float32[4, 2]", "label": "float32[4, 3]"}
    assert not np.array_equal(made.batches.first()["label"], np.rint(made.batches.first()["label"]))


def test_seed_changes_weights_and_data() -> None:
    first, second = setup("model:mlp"), setup("model:mlp,seed=1")

    assert first.network.weights_hash() != second.network.weights_hash()
    assert first.batches.hash != second.batches.hash
    assert first.batches.hash == setup("model:mlp").batches.hash


# --- data sets --------------------------------------------------------------------------------------------------------


def test_data_set_decides_on_shape_and_classes() -> None:
    made = setup("model:lenet,dataset=digits,batch_size=5")

    assert forms(made) == {"input": "float32[5, 1, 8, 8]", "label": "int64[5]"}
    assert made.batches.io == "data set, read in each run"
    assert {name: array.shape for name, array in made.batches.first().items()} == {
        "input": (5, 1, 8, 8),
        "label": (5,),
    }


def test_inference_on_a_data_set_is_fed_no_labels() -> None:
    made = setup("model:lenet,dataset=digits,mode=inference")

    assert list(made.batches.first()) == ["input"]


def test_data_set_for_the_first_input_of_a_file(tmp_path: Path) -> None:
    create_model("lenet", shape=(1, 8, 8)).save(tmp_path / "lenet.onnx")

    made = setup(f"model:{tmp_path}/lenet.onnx,dataset=digits,batch_size=3")

    assert forms(made) == {"input": "float32[3, 1, 8, 8]", "label": "int64[3]"}


def test_data_set_that_does_not_fit_is_refused(tmp_path: Path, sequence: str) -> None:
    create_model("lenet").save(tmp_path / "lenet.onnx")

    assert "the data set gives float32[batch, 1, 8, 8] for it" in refusal("model:lenet,dataset=digits,dtype=float64")
    assert "is float32[64, 1, 28, 28], and the data set" in refusal(f"model:{tmp_path}/lenet.onnx,dataset=digits")
    assert "gives" in refusal(f"model:{sequence},dataset=digits,mode=inference,length=2")
    assert "has the unknown option 'shape'" in refusal("model:lenet,dataset=digits,shape=1x8x8")


# --- files ------------------------------------------------------------------------------------------------------------


def test_file_is_named_for_its_graph_and_gets_a_loss(tmp_path: Path) -> None:
    create_model("mlp", shape=(6,), classes=3).save(tmp_path / "somewhere.onnx")

    made = setup(f"model:{tmp_path}/somewhere.onnx,batch_size=4")

    assert (made.name, made.loss, made.arguments) == ("mlp", "loss", {})
    assert forms(made) == {"input": "float32[4, 6]", "label": "int64[4]"}
    assert set(np.concatenate([b["label"] for b in itertools.islice(made.batches.endless(), 8)])) == {0, 1, 2}


def test_loss_in_the_file_is_used(tmp_path: Path) -> None:
    network = create_model("mlp", shape=(6,), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss", name="own", label="target")
    network.save(tmp_path / "own.onnx")

    assert setup(f"model:{tmp_path}/own.onnx").loss == "own"
    assert forms(setup(f"model:{tmp_path}/own.onnx,mode=inference")) == {"input": "float32[64, 6]"}
    assert "loss 'own' of its own" in refusal(f"model:{tmp_path}/own.onnx,loss=MeanSquaredError")


def test_fixed_batch_size_of_a_file_is_taken(tmp_path: Path) -> None:
    create_model("mlp", 16, shape=(6,)).save(tmp_path / "fixed.onnx")

    made = setup(f"model:{tmp_path}/fixed.onnx")

    assert (made.batch_size, made.has_free_batch) == (16, False)
    assert forms(made)["label"] == "int64[16]"
    assert setup(f"model:{tmp_path}/fixed.onnx,batch_size=16").batch_size == 16
    assert "takes minibatches of 16 only" in refusal(f"model:{tmp_path}/fixed.onnx,batch_size=8")


def test_symbolic_sizes_are_options(sequence: str) -> None:
    made = setup(f"model:{sequence},mode=inference,length=5,batch_size=2")

    assert forms(made) == {"x": "float32[2, 5, 3]", "y": "float32[2, 5, 3]"}
    assert not made.has_free_batch
    assert "Give each symbolic size as an option, such as length=128" in refusal(f"model:{sequence},mode=inference")
    assert "length was given as 0" in refusal(f"model:{sequence},mode=inference,length=0")
    assert "unknown option 'lenght'. Did you mean 'length'?" in refusal(
        f"model:{sequence},mode=inference,length=3,lenght=5"
    )


def test_sizes_without_a_name_are_the_batch_in_front_and_refused_elsewhere(tmp_path: Path) -> None:
    node = oh.make_node("Relu", ["x"], ["y"], name="relu")
    front = save(tmp_path / "front.onnx", {"x": (FLOAT, [None, 3])}, [node], {"y": (FLOAT, [None, 3])})
    inside = save(tmp_path / "inside.onnx", {"x": (FLOAT, ["n", None])}, [node], {"y": (FLOAT, ["n", None])})

    assert forms(setup(f"model:{front},mode=inference,batch_size=2")) == {"x": "float32[2, 3]"}
    assert "float32[n, ?], which leaves a size open" in refusal(f"model:{inside},mode=inference")


def test_file_without_batch_or_with_two_outputs(tmp_path: Path) -> None:
    node = oh.make_node("Relu", ["x"], ["y"], name="relu")
    scalar = save(tmp_path / "scalar.onnx", {"x": (FLOAT, [])}, [node], {"y": (FLOAT, [])})
    nodes = [node, oh.make_node("Abs", ["x"], ["z"], name="abs")]
    kind = (FLOAT, ["n", 3])
    two = save(tmp_path / "two.onnx", {"x": kind}, nodes, {"y": kind, "z": kind})

    assert setup(f"model:{scalar},mode=inference").batch_size == 1
    assert "has the outputs y, z and no loss" in refusal(f"model:{two}")
    assert forms(setup(f"model:{two},mode=inference")) == {"x": "float32[64, 3]"}


def test_integers_whose_range_is_unknown_are_small(tmp_path: Path) -> None:
    node = oh.make_node("Identity", ["x"], ["y"], name="same")
    kind = (INT, ["n", 50])
    path = save(tmp_path / "ids.onnx", {"x": kind}, [node], {"y": kind})

    assert set(setup(f"model:{path},mode=inference").batches.first()["x"].flat) == {0, 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model:lenett", "no model named 'lenett'. Did you mean 'lenet'?"),
        ("model:lenet,batchsize=3", "unknown option 'batchsize'. Did you mean 'batch_size'?"),
        ("model:lenet,depth=8", "unknown option 'depth'"),
        ("model:lenet,mode=train", "accepted is one of training, inference"),
        ("model:lenet,mode=inference,optimizer=adam", "unknown option 'optimizer'"),
        ("model:lenet,batch_size=0", "batch_size was given as 0"),
        ("model:lenet,learning_rate=0", "learning_rate was given as 0"),
        ("model:lenet,native=1", "accepted is True or False"),
        ("model:lenet,shape=8x8", "LeNet needs samples of shape (C, H, W)"),
        ("model:lenet,classes=0", "classes was given as 0"),
        ("model:lenet,padding=-1", "padding was given as -1"),
        ("model:lenet,dtype=int8", "cannot be of dtype 'int8'"),
        ("model:lenet,dtype=float77", "'float77' is not a dtype"),
        ("model:lenet,loss=Hinge", "no loss named 'hinge'"),
        ("model:lenet,dataset=digit", "Did you mean 'digits'?"),
        ("model:no/such.onnx", "cannot be read"),
        ("model:lenet,batch_size=99999999999", "do not fit into memory"),
    ],
)
def test_what_does_not_exist_or_fit_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)


def test_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no network")

    assert "broken.onnx" in refusal(f"model:{tmp_path}/broken.onnx")


# --- what is told of a network ----------------------------------------------------------------------------------------


def test_structure_is_without_first_weights() -> None:
    network = create_model("simple_cnn", widths=(4,))

    assert structure_hash(network) == structure_hash(create_model("simple_cnn", widths=(4,), seed=1))
    assert structure_hash(network) != structure_hash(create_model("simple_cnn", widths=(5,)))
    assert network.weights_hash() == create_model("simple_cnn", widths=(4,)).weights_hash(), "it was not changed"


def test_constants_belong_to_the_structure(tmp_path: Path) -> None:
    hashes = set()
    for sizes in ([2, -1], [-1, 2]):
        nodes = [
            oh.make_node("Constant", [], ["sizes"], name="sizes", value_ints=sizes),
            oh.make_node("Reshape", ["x", "sizes"], ["y"], name="reshape"),
        ]
        path = save(tmp_path / "r.onnx", {"x": (FLOAT, [2, 2])}, nodes, {"y": (FLOAT, [2, 2])})
        hashes.add(structure_hash(Network.load(path)))

    assert len(hashes) == 2


def test_operations_that_cannot_be_counted_are_unknown(sequence: str, tmp_path: Path) -> None:
    node = oh.make_node("Erf", ["x"], ["y"], name="erf")
    unknown = save(tmp_path / "erf.onnx", {"x": (FLOAT, [4, "n", 3])}, [node], {"y": (FLOAT, [4, "n", 3])})
    no_rule = oh.make_node("Mine", ["x"], ["y"], name="mine", domain="mine")
    without = save(tmp_path / "mine.onnx", {"x": (FLOAT, [4, 3, 3])}, [no_rule], {"y": (FLOAT, [4])})

    assert counted_flops(create_model("mlp", shape=(3,), hidden=(), classes=2), 5) == 5 * 2 * (2 * 3 + 1)
    assert counted_flops(Network.load(sequence), 5) is None
    assert counted_flops(Network.load(unknown), 4) is None
    assert counted_flops(Network.load(without), 4) is None


def test_bytes_of_outputs(sequence: str) -> None:
    assert output_bytes(create_model("mlp", shape=(3,), classes=7, dtype="float64"), 5) == 5 * 7 * 8
    assert output_bytes(Network.load(sequence), 5) == 5 * 1 * 3 * 4


# --- any file ---------------------------------------------------------------------------------------------------------


def test_positions_and_several_inputs_of_a_file(tmp_path: Path) -> None:
    nodes = [
        oh.make_node("Gather", ["table", "ids"], ["rows"], name="embed"),
        oh.make_node("Cast", ["mask"], ["kept"], to=FLOAT, name="cast"),
        oh.make_node("Unsqueeze", ["kept", "last"], ["column"], name="unsqueeze"),
        oh.make_node("Mul", ["rows", "column"], ["y"], name="mul"),
    ]
    path = save(
        tmp_path / "embed.onnx",
        {"table": (FLOAT, [30, 4]), "ids": (INT, ["n", "length"]), "mask": (INT, ["n", "length"]), "last": (INT, [1])},
        nodes,
        {"y": (FLOAT, ["n", "length", 4])},
    )
    made = setup(f"model:{path},mode=inference,length=200")
    ids, mask = made.batches.first()["ids"], made.batches.first()["mask"]

    assert set(np.unique(ids)) == set(range(30))
    assert set(np.unique(mask)) == {0, 1}


def test_inputs_that_are_no_numbers_are_refused_clearly(tmp_path: Path) -> None:
    node = oh.make_node("Identity", ["x"], ["y"], name="same")
    kind = (onnx.TensorProto.STRING, ["n"])
    texts = save(tmp_path / "texts.onnx", {"x": kind}, [node], {"y": kind})
    row = oh.make_tensor_sequence_value_info("x", FLOAT, None)
    length = oh.make_node("SequenceLength", ["x"], ["y"], name="length")
    graph = oh.make_graph([length], "graph", [row], [oh.make_tensor_value_info("y", INT, [])])
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=10), tmp_path / "list.onnx")

    assert "input 'x' is string[n]; accepted are networks" in refusal(f"model:{texts},mode=inference")
    assert "input 'x' is sequence of float32" in refusal(f"model:{tmp_path}/list.onnx,mode=inference")


def test_outputs_of_any_kind_are_measured(tmp_path: Path) -> None:
    nodes = [
        oh.make_node("SequenceConstruct", ["x", "x"], ["s"], name="list"),
        oh.make_node("ArgMax", ["x"], ["i"], name="best"),
        oh.make_node("Cast", ["x"], ["t"], to=onnx.TensorProto.STRING, name="texts"),
    ]
    outputs = [
        oh.make_tensor_sequence_value_info("s", FLOAT, None),
        oh.make_tensor_value_info("i", INT, [1, 3]),
        oh.make_tensor_value_info("t", onnx.TensorProto.STRING, ["n", 3]),
    ]
    graph = oh.make_graph(nodes, "graph", [oh.make_tensor_value_info("x", FLOAT, ["n", 3])], outputs)
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=10), tmp_path / "kinds.onnx")
    workload = open_workload(f"model:{tmp_path}/kinds.onnx,mode=inference,batch_size=4")
    workload.run()

    assert [score.value for score in workload.scores()] == [0.0]
    assert workload.work.dtype == "float32"
