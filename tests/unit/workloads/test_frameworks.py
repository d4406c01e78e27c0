from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import DeviceError, UnknownNameError
from deep500.measure.workload import parse_workload
from deep500.networks.creation import create_model
from deep500.workloads._frameworks import framework_factors, open_executor, reference_executor, setting_factors


def test_reference_runs_what_names_no_framework() -> None:
    network = create_model("mlp", shape=(3,))

    executor = open_executor(parse_workload("model:mlp"), network)

    assert (executor.framework, str(executor.device)) == ("reference", "cpu")
    assert reference_executor(network).framework == "reference"


def test_unknown_framework_and_device_are_refused() -> None:
    network = create_model("mlp", shape=(3,))

    with pytest.raises(UnknownNameError, match="Did you mean 'reference'"):
        open_executor(parse_workload("model:mlp@referense"), network)
    with pytest.raises(DeviceError, match="'tpu' is not a device"):
        open_executor(parse_workload("model:mlp@reference:tpu"), network)
    with pytest.raises(DeviceError):
        open_executor(parse_workload("model:mlp@reference:gpu"), network)


def test_factors_name_framework_version_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("TF_DETERMINISTIC_OPS", "1")

    factors = framework_factors("reference", "cpu")

    assert factors["framework"] == "reference"
    assert factors["framework_version"] == np.__version__
    assert factors["device"] == "cpu"
    assert factors["OMP_NUM_THREADS"] == "3"
    assert factors["TF_DETERMINISTIC_OPS"] == "1"


def test_framework_without_an_adapter_has_no_version() -> None:
    factors = framework_factors("somebody's own", "cpu")

    assert factors["framework_version"] == "unavailable"
    assert "framework_switches" not in factors


def test_variables_that_are_not_set_are_no_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("SOME_SECRET", "x")

    assert not {"MKL_NUM_THREADS", "SOME_SECRET"} & set(setting_factors())


def test_switches_of_the_framework_are_one_factor() -> None:
    torch = pytest.importorskip("torch")

    switches = str(setting_factors("torch")["framework_switches"])

    assert f"deterministic_algorithms={torch.are_deterministic_algorithms_enabled()}" in switches
    assert "framework_switches" not in setting_factors("no_such_module")
