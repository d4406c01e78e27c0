from __future__ import annotations

from pathlib import Path

import pytest

from deep500.cli.listing import KINDS, list_kind, one_line_description
from deep500.core.errors import UnknownNameError
from deep500.core.requirement import Requirement
from tests.unit.recipe.support import run_python

EXPECTED = {
    "frameworks": {"reference", "pytorch", "tensorflow", "onnxruntime"},
    "models": {"lenet", "resnet", "mlp", "simple_cnn"},
    "datasets": {"digits", "cifar10"},
    "augmentations": {"cutout", "horizontal_flip", "mixup", "random_crop"},
    "optimizers": {"adam", "gradient_descent", "momentum"},
    "samplers": {"bucket", "choice", "ordered", "shuffle", "stratified"},
    "schedules": {"cosine", "one_cycle", "step_list"},
    "losses": {"softmax_cross_entropy_loss", "mean_squared_error"},
    "transformations": {"batch_normalization_folding", "freezing", "micro_batching", "precision"},
    "metrics": {"test_accuracy", "training_accuracy", "wallclock_time", "communication_volume"},
    "events": {"batch_hash", "progress_bar"},
    "schemes": {"allreduce", "dpsgd", "stale_synchronous"},
    "communicators": {"local", "mpi", "simulated"},
    "distributed_metrics": {"communication_volume", "consensus_distance", "exposed_exchange", "staleness"},
    "exchange_algorithms": {"ring_allreduce", "rabenseifner_allreduce"},
    "operators": {"conv", "relu", "batch_normalization"},
    "recipes": {"digits_lenet", "digits_mlp", "cifar10_resnet44"},
    "workloads": {"callable", "dataset", "deepbench", "model", "op", "recipe"},
    "problem_sets": {"deepbench"},
    "outcome_readers": {"github_jobs", "history", "junit", "outcomes", "pai", "results"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_listed_with_a_line_on_each(kind: str) -> None:
    rows = list_kind(kind)

    assert EXPECTED[kind] <= {row[0] for row in rows}
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    for row in rows:
        assert row[-1]
        assert not set("`\\\n") & set(row[-1]), row


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'models'"):
        list_kind("model")


def test_framework_that_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module != "torch")

    states = {row[0]: row[1] for row in list_kind("frameworks")}

    assert states["pytorch"] == "pip install 'deep500[pytorch]'"
    assert states["reference"][0].isdigit()


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ('"""The file."""\n__all__ = ["a"]\nclass a:\n    """The class.\n\n    More."""\n', "The class"),
        (
            '"""The file."""\n__all__ = ["a"]\ndef a():\n    r"""The function, e.g. this. More."""\n',
            "The function, e.g. this",
        ),
        ('"""The file."""\n__all__ = ["a"]\na = 3\n', "The file"),
        ('"""The file: :math:`x` of ``y`` and :class:`~a.b`.\n\nMore."""\n', "The file: x of y and a.b"),
        ('"""One\nsentence\n"""\nimport no_such_module\n', "One sentence"),
        ("", ""),
    ],
)
def test_description(tmp_path: Path, text: str, description: str) -> None:
    (tmp_path / "plugin.py").write_text(text)

    assert one_line_description(tmp_path / "plugin.py") == description


SCRIPT = """
import sys
from deep500.cli.main import run_command
for kind in ("models", "operators", "recipes", "frameworks"):
    run_command(["list", kind])
heavy = ("torch", "tensorflow", "onnx", "onnx_ir", "sklearn", "rich", "deep500.networks.models.lenet", "numpy")
print([name for name in heavy if name in sys.modules])
"""


def test_nothing_is_imported_for_it(tmp_path: Path) -> None:
    result = run_python("-c", SCRIPT, cwd=tmp_path)

    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_what_adapters_bring_is_listed_with_what_it_is() -> None:
    rows = dict(list_kind("communicators"))

    assert rows["torch_distributed"].startswith("A rank of torch.distributed")
    assert all(rows.values())
