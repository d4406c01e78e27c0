from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import MeasurementError
from deep500.core.tensor_descriptor import tensordesc
from deep500.measure.workload import parse_workload
from deep500.workloads._operator_check.spec import custom_text, read_name


@pytest.mark.parametrize(
    "path",
    [
        "ops.py",
        "/a b/ops.py",
        "a,b@c/ops.py",
        "it's/ops.py",
        "a\"b'c/o[ps.py",
        "a:b/ops.py",
        "ümläut/ops.py",
        "a\\b.py",
    ],
)
@pytest.mark.parametrize(
    "attributes", [{}, {"power": 3, "names": "a,b@c", "sizes": (1, 2), "factor": -0.5, "empty": ()}]
)
def test_texts_are_read_as_they_were_written(path: str, attributes: Any) -> None:
    text = custom_text(
        path,
        "IPow",
        attributes,
        framework="pytorch",
        device="gpu:1",
        inputs=[tensordesc("float64", 2, 3), tensordesc("int64", ())],
        mode="gradient",
        against=None,
        seed=7,
    )
    spec = parse_workload(text)

    assert read_name(spec) == (Path(path), "IPow")
    assert (spec.kind, spec.framework, spec.device) == ("custom", "pytorch", "gpu:1")
    assert spec.options == {
        **attributes,
        "call.inputs": ["2x3:float64", "scalar:int64"],
        "call.mode": "gradient",
        "call.seed": 7,
    }


def test_names() -> None:
    assert read_name(parse_workload("custom:ops.py")) == (Path("ops.py"), None)
    assert read_name(parse_workload("custom:ops.py:IPow,power=3")) == (Path("ops.py"), "IPow")
    assert custom_text("ops.py", "IPow", {}) == "custom:ops.py:IPow"
    with pytest.raises(MeasurementError, match="names no file"):
        read_name(parse_workload("custom::IPow"))
