from __future__ import annotations

from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.networks.network import Network
from tests.unit.networks.support import relu_model

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path) -> str:
    Network.load(relu_model("N", "width")).save(tmp_path / "relu.onnx")
    return str(tmp_path / "relu.onnx")


def test_table_of_a_file(model: str, capsys: Capture) -> None:
    assert run_command(["summary", model]) == 0
    assert "a size that is not known: 1 node" in capsys.readouterr().out
    assert run_command(["summary", model, "--batch-size", "3", "--size", "width=5"]) == 0
    assert "FLOPs of one inference of 3 samples: 15" in capsys.readouterr().out


def test_named_model_with_a_loss_in_a_mode(capsys: Capture) -> None:
    assert run_command(["summary", "mlp", "--loss", "MeanSquaredError", "--mode", "train"]) == 0
    shown = capsys.readouterr().out
    assert "in training mode" in shown
    assert "Losses: loss" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.onnx"], "cannot be read"),
        (["lenet", "--size", "batch"], "accepted is NAME=N"),
        (["lenet", "--size", "batch=-1"], "accepted is NAME=N"),
        (["lenet", "--size", "bath=2"], "Did you mean 'batch'"),
        (["lenet", "--batch-size", "0"], "batch_size was given as 0"),
        (["lenet", "--mode", "sleep"], "accepted are eval, train, declared"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["summary", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_help(capsys: Capture) -> None:
    assert run_command(["summary", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
