from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.networks.creation import create_model

Capture = pytest.CaptureFixture[str]
TRAINING = ["--framework", "reference,pytorch", "--loss", "SoftmaxCrossEntropyLoss", "--training-steps", "3", "-q"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    create_model("mlp", shape=(1, 8, 8), hidden=[5]).save("mlp.onnx")


def test_table_file_and_picture(capsys: Capture) -> None:
    pytest.importorskip("torch")
    files = ["--output", "t.json", "--picture", "t.svg", "--optimizer", "adam", "--batch-size", "4"]

    assert run_command(["validate", "mlp.onnx", *TRAINING, *files]) == 0
    shown = capsys.readouterr().out
    content = json.loads(Path("t.json").read_text(encoding="utf-8"))
    assert "by AdamOptimizer, 3 steps, against reference: PASSED" in shown
    assert "The picture is in t.svg\nThe report is in t.json\n" in shown
    assert content["passed"] is True
    assert len(content["trajectories"][0]["distances"]) == 3
    ET.parse("t.svg")


def test_data_set_is_trained_on(capsys: Capture) -> None:
    pytest.importorskip("torch")

    assert run_command(["validate", "mlp.onnx", *TRAINING, "--dataset", "digits"]) == 0
    assert "pytorch: agrees" in capsys.readouterr().out


def test_difference_fails(capsys: Capture) -> None:
    pytest.importorskip("torch")

    assert run_command(["validate", "mlp.onnx", *TRAINING, "--tolerance", "0"]) == 1
    assert "pytorch: parts at step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--optimizer", "adm"], "Did you mean 'adam'"),
        (["--no-alone"], "leave them out with --training-steps"),
        (["--training-steps", "0"], "whole numbers from 1"),
        (["--picture", "t.pdf"], ".png or .svg"),
        (["--dataset", "diabetes"], "was given as float32[32, 10]"),
    ],
)
def test_options_are_checked(options: list[str], why: str, capsys: Capture) -> None:
    pytest.importorskip("torch")

    assert run_command(["validate", "mlp.onnx", *TRAINING, *options]) == 2
    assert why in capsys.readouterr().err


def test_picture_needs_trainings(capsys: Capture) -> None:
    assert run_command(["validate", "mlp.onnx", "--picture", "t.svg"]) == 2
    assert "give --training-steps too" in capsys.readouterr().err
