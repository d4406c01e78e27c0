from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deep500.cli.network_options import read_inputs, read_network, read_sizes, register_operators
from deep500.core.errors import InvalidInputError, OperatorError
from deep500.networks.creation import create_model
from deep500.operators.custom import catalogue


def test_network_its_mode_and_its_loss(tmp_path: Path) -> None:
    create_model("mlp").save(tmp_path / "mlp.onnx")

    for model in ("mlp", str(tmp_path / "mlp.onnx")):
        network, loss = read_network(model, "MeanSquaredError", "train")
        assert (network.name, network.mode, loss) == ("mlp", "train", "loss")
    assert read_network("mlp", "output")[1] == "output"
    assert read_network("mlp")[1] is None
    with pytest.raises(InvalidInputError, match="--mode was given as 'nap'"):
        read_network("mlp", mode="nap")


def test_sizes() -> None:
    assert read_sizes(["batch=4", "length=0"]) == {"batch": 4, "length": 0}
    for text in ("batch", "=4", "batch=", "batch=-1", "batch=4.0", "batch=²"):
        with pytest.raises(InvalidInputError, match="accepted is NAME=N"):
            read_sizes([text])


def test_values_of_files_and_random_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = create_model("mlp", shape=(3,), classes=2)
    network.append_loss("SoftmaxCrossEntropyLoss")
    np.save("x.npy", np.ones((5, 3), np.float32))
    np.savez("several.npz", a=np.ones(2), b=np.ones(2))
    found = read_inputs(network, ["input=x.npy"], {"batch": 5}, 0)

    assert found["input"].tolist() == np.ones((5, 3)).tolist()
    assert found["label"].shape == (5,)
    for text, message in (
        ("input", "accepted is NAME=FILE"),
        ("input=none.npy", "no file of one array"),
        ("input=several.npz", "holds several arrays"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read_inputs(network, [text], {}, 0)


def test_what_is_given_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((5, 3), np.float32))

    with pytest.raises(InvalidInputError, match="--size batch was given twice: as 4 and as 5"):
        read_sizes(["batch=4", "batch=5"])
    with pytest.raises(InvalidInputError, match="--input input was given twice"):
        read_inputs(create_model("mlp", shape=(3,)), ["input=x.npy", "input=x.npy"], {}, 0)


def test_operators_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_ENTRIES", {})
    file = tmp_path / "mine.py"
    file.write_text(
        "import deep500 as d5\n\nclass Doubled(d5.CustomPythonOp):\n    def forward(self, x):\n        return 2 * x\n",
        encoding="utf-8",
    )
    (tmp_path / "none.py").write_text("x = 1\n", encoding="utf-8")

    register_operators([str(file)])
    register_operators([str(file)])
    assert catalogue.find_custom_op("Doubled")(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(OperatorError, match=r"none.py defines no custom operator"):
        register_operators([str(tmp_path / "none.py")])
    with pytest.raises(InvalidInputError, match="accepted is a Python file"):
        register_operators([str(tmp_path / "missing.py")])
