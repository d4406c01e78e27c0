from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from deep500.cli.main import run_command
from deep500.networks.creation import create_model

Capture = pytest.CaptureFixture[str]
SHORT = ["--framework", "reference", "--time-limit", "0.3", "--no-peak", "--quiet"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    create_model("mlp", shape=(6,), classes=3, hidden=[5]).save("mlp.onnx")


def test_table_file_and_picture(capsys: Capture) -> None:
    files = ["--output", "p.json", "--picture", "p.svg"]

    assert run_command(["profile", "mlp.onnx", "--size", "batch=8", "--top", "1", *SHORT, *files]) == 0
    shown = capsys.readouterr().out
    content = json.loads(Path("p.json").read_text(encoding="utf-8"))
    assert "input: float32[8, 6]" in shown
    assert "and 3 more" in shown
    assert "The profile is in p.json\nThe picture is in p.svg\n" in shown
    assert len(content["nodes"]) == 4
    assert content["plan"]["time_limit_s"] == 0.3
    assert f"{content['nodes'][0]['derived']['share']:.1%}" in Path("p.svg").read_text(encoding="utf-8")
    ET.parse("p.svg")


def test_gradient_in_training_mode_with_values_of_a_file(capsys: Capture) -> None:
    np.save("x.npy", np.ones((3, 6), np.float32))
    np.save("label.npy", np.array([0, 1, 2]))
    values = ["--input", "input=x.npy", "--input", "label=label.npy"]
    loss = ["--loss", "SoftmaxCrossEntropyLoss", "--backprop", "--mode", "train"]

    assert run_command(["profile", "mlp.onnx", *SHORT, *values, *loss]) == 0
    shown = capsys.readouterr().out
    assert "inference and gradient of 'loss', training mode" in shown
    assert "input: float32[3, 6]" in shown


@pytest.mark.slow
def test_fresh_processes(capsys: Capture) -> None:
    assert run_command(["profile", "mlp.onnx", "--launches", "2", "--output", "p.json", *SHORT]) == 0
    content = json.loads(Path("p.json").read_text(encoding="utf-8"))
    assert len(content["whole"]["launches"]) == len(content["processes"]) == 2
    assert "there are 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.onnx"], "cannot be read"),
        (["mlp.onnx", "--sort", "size"], "accepted are time, flops, bytes, order"),
        (["mlp.onnx", "--top", "0"], "--top was given as 0"),
        (["mlp.onnx", "--launches", "0"], "--launches was given as 0"),
        (["mlp.onnx", "--picture", "p.png"], "names that end with .svg"),
        (["mlp.onnx", "--output", "no/such/p.json"], "profile"),
        (["mlp.onnx", "--output", "mlp.onnx"], "mlp.onnx"),
        (["mlp.onnx", "--output", "p.svg", "--picture", "p.svg"], "p.svg"),
        (["mlp.onnx", "--framework", "torch"], "no framework named 'torch'"),
        (["mlp.onnx", "--size", "bath=2"], "Did you mean 'batch'"),
        (["mlp.onnx", "--size", "batch=x"], "accepted is NAME=N"),
        (["mlp.onnx", "--input", "input"], "accepted is NAME=FILE"),
        (["mlp.onnx", "--input", "input=mlp.onnx"], "no file of one array"),
        (["mlp.onnx", "--framework", "reference", "--backprop"], "no loss to differentiate"),
        (["mlp.onnx", "--framework", "reference", "--time-limit", "-1"], "time_limit_s was given as -1"),
        (["mlp.onnx", "--mode", "sleep"], "accepted are eval, train, declared"),
        (["mlp.onnx", "--framework", "reference", "--device", "gpu:7"], "gpu:7"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["profile", *arguments, "--quiet"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["profile", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
