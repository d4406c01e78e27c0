"""Each framework works where the others are not installed, and says what to install where its own is missing."""

from __future__ import annotations

import importlib.util
import subprocess

import pytest

from tests.architecture.support import run_python

PACKAGES = {
    "reference": (),
    "pytorch": ("torch",),
    "tensorflow": ("tensorflow", "keras"),
    "onnxruntime": ("onnxruntime",),
}

# Every finder says "not found" for the hidden packages, which is how a missing package looks from inside.
HIDE = """
import sys

class Hiding:
    def __init__(self, finder, hidden):
        self.finder, self.hidden = finder, hidden

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

framework, *hidden = sys.argv[1:]
sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]
"""

TRAIN = """
import importlib
import numpy as np
import deep500.networks

network = deep500.networks.create_model("mlp", batch_size=4, shape=(1, 8, 8), classes=10)
network.append_loss("SoftmaxCrossEntropyLoss")
adapter = importlib.import_module(f"deep500.frameworks.{framework}")
executor = adapter.from_model(network)
optimizer = adapter.GradientDescent(executor, "loss", learning_rate=0.1)
random = np.random.default_rng(0)
feeds = {
    "input": random.standard_normal((4, 1, 8, 8), dtype=np.float32),
    "label": random.integers(0, 10, 4),
}
losses = [float(np.asarray(optimizer.step(feeds)["loss"])) for _ in range(2)]
assert np.isfinite(losses).all() and losses[1] < losses[0], losses
loaded = [name for name in hidden if name in sys.modules]
assert not loaded, loaded
print("trained")
"""

MISSING = """
from deep500.core.errors import MissingDependencyError
try:
    import importlib
    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    adapter.from_model
except MissingDependencyError as error:
    print(error)
else:
    sys.exit("no error")
"""


def run_hiding(framework: str, script: str, hidden: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run ``script`` in a fresh interpreter in which the packages ``hidden`` are not to be found."""
    return run_python("-c", HIDE + script, framework, *hidden)


@pytest.mark.parametrize("framework", PACKAGES)
def test_framework_trains_without_the_others(framework: str) -> None:
    others = tuple(name for other, names in PACKAGES.items() if other != framework for name in names)
    if not all(importlib.util.find_spec(package) for package in PACKAGES[framework]):
        pytest.skip(f"{framework} is not installed")

    result = run_hiding(framework, TRAIN, others)

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("trained")


@pytest.mark.parametrize("framework", [name for name, packages in PACKAGES.items() if packages])
def test_missing_framework_names_the_extra_that_brings_it(framework: str) -> None:
    result = run_hiding(framework, MISSING, PACKAGES[framework])

    assert result.returncode == 0, result.stderr
    assert f"deep500[{framework}]" in result.stdout


def test_hidden_package_looks_missing() -> None:
    script = "import importlib.util\nassert importlib.util.find_spec('numpy') is None\nimport numpy\n"

    result = run_hiding("reference", script, ("numpy",))

    assert "ModuleNotFoundError: No module named 'numpy'" in result.stderr
