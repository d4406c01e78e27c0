from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.frameworks import installed_frameworks
from deep500.measure.results.document import content_hash
from deep500.measure.workload import open_workload
from tests.unit.workloads._operator_check.support import write_operators
from tests.unit.workloads.support import opened, plain, refusal

INSTALLED = installed_frameworks("prepare_call")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_operators(tmp_path, "Good", "Native", "NeedsPower")


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("mode", ["forward", "gradient"])
def test_results_are_those_of_numpy(path: Path, framework: str, mode: str) -> None:
    content = plain(opened(f"custom:{path}:Native,call.mode={mode}@{framework}"))

    assert content["identity"] == {
        "problem": "custom operator",
        "operator": "square_for_checks",
        "attributes": {},
        "inputs": ["float32[2, 3, 4]"],
        "mode": mode,
        "alternatives_allowed": True,
    }
    assert content["factors"]["framework"] == framework
    assert content["factors"]["implementation"] == "operators.py:Native"
    assert content["factors"]["source_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(content["factors"]["library_sha256"]) == 64
    assert content["scores"] == {"L2 relative error to the reference": 0.0}
    assert content["data_hash"] is not None


def test_run_is_the_framework_function_itself(path: Path) -> None:
    workload: Any = open_workload(f"custom:{path}:Native@reference")

    assert workload.run is workload._call.run
    assert workload.run.func is workload._op.numpy_forward


def test_options_change_what_is_computed(path: Path) -> None:
    base = f"custom:{path}:NeedsPower,power=3"
    texts = [base, f"{base},call.mode=gradient", f"{base},call.size=large", f"{base},call.inputs=[5:float64]"]
    texts += [base.replace("power=3", "power=2"), f"{base},call.dtype=float64"]
    identities = [dict(open_workload(text).identity) for text in texts]

    assert len({content_hash(identity) for identity in identities}) == len(texts)
    assert identities[2]["inputs"] == ["float32[64, 96, 128]"]
    assert identities[3]["inputs"] == ["float64[5]"]
    assert identities[4]["attributes"] == {"power": 2}
    assert open_workload(base).data_hash != open_workload(f"{base},call.seed=1").data_hash
    assert open_workload(base).data_hash == open_workload(base).data_hash


def test_work_is_what_is_moved(path: Path) -> None:
    forward = open_workload(f"custom:{path}:Native").work
    gradient = open_workload(f"custom:{path}:Native,call.mode=gradient").work

    assert (forward.bytes, gradient.bytes, forward.dtype, forward.flops) == (192, 384, "float32", None)


def test_a_function_in_its_place(path: Path) -> None:
    own = open_workload(f"custom:{path}:Good")
    other = opened(f"custom:{path}:Good,call.against=numpy:sin")

    assert dict(own.identity) == dict(other.identity)
    assert own.data_hash == other.data_hash
    assert other.factors["implementation"] == "numpy:sin"
    assert other.scores()[0].value < 1e-7
    assert opened(f"custom:{path}:Good,call.against=numpy:cos").scores()[0].value > 0.1


def test_the_function_that_the_operator_names(path: Path) -> None:
    text = path.read_text().replace(
        "        return np.sin(x)\n",
        "        return np.sin(x)\n\n    def framework_function(self, framework):\n"
        "        return np.sin if framework == 'reference' else None\n",
    )
    path.write_text(text)

    assert "sin" in str(opened(f"custom:{path}:Good,call.against=own").factors["implementation"])
    assert "names no function of reference" in refusal(f"custom:{path}:NeedsPower,power=2,call.against=own")


def test_the_only_operator_needs_no_name(tmp_path: Path) -> None:
    source = tmp_path / "only.cpp"
    source.write_text(
        "#include <deep500/operator.h>\nstruct Twice {\n"
        "    static void forward(deep500::View<const float> x, deep500::View<float> y) {\n"
        "        for (int64_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];\n    }\n};\nD500_OPERATOR(twice, Twice)\n"
    )
    workload: Any = opened(f"custom:{source}")

    assert workload.identity["operator"] == "twice"
    np.testing.assert_array_equal(workload._expected[0], 2 * workload._inputs[0])


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "names no operator, and its file has several: Good, Native, NeedsPower"),
        (":God", "Did you mean 'Good'"),
        (":Good,powr=3", "unknown option 'powr'"),
        (":NeedsPower", "needs a value for power"),
        (":NeedsPower,power=3,call.mode=backward", "accepted is one of forward, gradient"),
        (":NeedsPower,power=3,call.size=huge", "accepted is one of small, large"),
        (":NeedsPower,power=3,call.seed=-1", "accepted is a whole number from 0"),
        (":NeedsPower,power=3,call.inputs=3", "accepted is shapes"),
        (":NeedsPower,power=3,call.inputs=[2y3]", "accepted is shapes"),
        (":NeedsPower,power=3,call.inputs=[3],call.size=large", "the shapes of NeedsPower are fixed"),
        (":Good,call.against=numpy:sine", "Did you mean 'sin'"),
        (":Good@pytorhc", "Did you mean 'pytorch'"),
        (":Good@reference:gpu:3", "gpu:3"),
    ],
)
def test_mistakes(path: Path, rest: str, message: str) -> None:
    found = refusal(f"custom:{path}{rest}")

    assert message in found
    assert "\n" not in found


def test_an_operator_without_backward_has_no_gradient(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "import deep500 as d5\nclass Plain(d5.CustomPythonOp):\n    def forward(self, x):\n        return x * x\n"
    )
    with pytest.raises(OperatorError, match="cannot be differentiated"):
        open_workload(f"custom:{tmp_path / 'plain.py'},call.mode=gradient")
