from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from deep500.cli.main import run_command
from deep500.networks.creation import create_model
from deep500.networks.picture.drawing import network_picture

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_picture_of_a_file(capsys: Capture) -> None:
    network = create_model("lenet")
    network.save("lenet.onnx")

    assert run_command(["picture", "lenet.onnx", "--output", "lenet.svg"]) == 0
    assert capsys.readouterr().out == "The picture is in lenet.svg\n"
    assert Path("lenet.svg").read_text(encoding="utf-8") == network_picture(network)
    assert run_command(["picture", "mlp", "--loss", "MeanSquaredError", "--output", "mlp.svg"]) == 0
    ET.parse("mlp.svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lenet"], "Missing option"),
        (["lenet", "--output", "x.png"], "accepted are names that end with .svg"),
        (["lenet", "--output", "no/such/x.svg"], "picture"),
        (["lenett", "--output", "x.svg"], "lenett"),
        (["same.svg", "--output", "same.svg"], "same.svg"),
        (["lenet", "--output", "x.svg", "--loss", "Hinge"], "hinge"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert run_command(["picture", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not list(Path().iterdir())


def test_help(capsys: Capture) -> None:
    assert run_command(["picture", "--help"]) == 0
    assert "Exit code:" in capsys.readouterr().out
