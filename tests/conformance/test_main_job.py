"""The main job: one recipe on real data reaches its verdict under every framework, from the same start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deep500.frameworks import FRAMEWORKS

RECIPE = Path(__file__).parents[2] / "recipes" / "digits_lenet.py"
TIME_LIMIT_S = {"pytorch": 60, "tensorflow": 60, "reference": 300}


def run(framework: str, folder: Path) -> dict:
    """Run the recipe as a user does; return the result file."""
    output = folder / f"{framework}.json"
    command = [sys.executable, "-m", "deep500", "run", str(RECIPE), "--framework", framework, "--output", str(output)]
    # The test suite quiets TensorFlow by a variable; a user has not set it, and sees no chatter either.
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    limit_s = TIME_LIMIT_S.get(framework, 300)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=limit_s
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "PASSED" in done.stdout.splitlines()
    return json.loads(output.read_text())


def test_the_recipe_passes_under_every_framework(tmp_path):
    names = [name for name in FRAMEWORKS if FRAMEWORKS.get(name).REQUIREMENT.is_installed()]
    results = {name: run(name, tmp_path) for name in names}
    assert "reference" in results
    for name, result in results.items():
        (metric,) = result["metrics"]
        assert (metric["name"], metric["acceptable"]) == ("TestAccuracy", 97.0), name
        assert metric["value"] >= 97.0, name
        assert result["complete"], name
        assert result["framework"]["name"] == name
    assert len({result["initial_weights_hash"] for result in results.values()}) == 1
    assert len({result["first_epoch_batches_hash"] for result in results.values()}) == 1
