from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep500.measure.environment.isolation import IsolationError
from deep500.measure.environment.probe import PROBES, Field
from deep500.measure.environment.record import EnvironmentRecord, environment_schema, record_environment
from deep500.measure.environment.system import System
from tests.unit.measure.environment.support import CPU, machine, write, write_groups_v2
from tests.unit.recipe.support import run_python

SECRET = "hunter2-do-not-tell"


def check_schema(record: EnvironmentRecord) -> dict[str, Any]:
    """Check a record's JSON against the schema, and return it as a reader sees it."""
    import jsonschema

    schema = environment_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    content: dict[str, Any] = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    jsonschema.Draft202012Validator(schema).validate(content)
    return content


def replace_probe(monkeypatch: pytest.MonkeyPatch, name: str, probe: Callable[[System], Any]) -> None:
    PROBES.get(name)
    monkeypatch.setitem(PROBES._loaded, name, probe)


def test_record_of_this_machine_obeys_the_schema() -> None:
    content = check_schema(record_environment())

    assert list(content["sections"]) == PROBES.names()
    assert content["sections"]["interpreter"]["version"] == sys.version.split()[0]


def test_record_takes_less_than_a_second() -> None:
    durations = []
    for _ in range(3):
        started = time.perf_counter()
        record_environment()
        durations.append(time.perf_counter() - started)

    assert statistics.median(durations) < 1


@pytest.mark.parametrize("full", [True, False])
def test_record_of_made_up_machines_obeys_the_schema(tmp_path: Path, full: bool) -> None:
    system = machine(tmp_path) if full else System(tmp_path / "nothing", {})

    content = check_schema(record_environment(system=system))

    cpu = content["sections"]["cpu"]
    assert cpu["sockets"] == (2 if full else "unavailable")
    if not full:
        assert cpu["reasons"]["flags"] == "/proc/cpuinfo: No such file or directory"


def test_field_that_raises_is_unavailable_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode() -> None:
        raise ZeroDivisionError("planted fault")

    fields = {
        "bad": Field("string", "Raises.", explode),
        "odd": Field("string", "No JSON.", object),
        "nan": Field("string", "No number.", lambda: float("nan")),
        "good": Field("integer", "Works.", lambda: 1),
    }
    replace_probe(monkeypatch, "gpu", lambda _: fields)

    record = record_environment()

    assert record.get("gpu.bad") == record.get("gpu.odd") == "unavailable"
    assert record.reason("gpu.bad") == "ZeroDivisionError: planted fault"
    assert "object, which JSON cannot hold" in str(record.reason("gpu.odd"))
    assert (record.get("gpu.nan"), record.get("gpu.good"), record.reason("gpu.good")) == ("nan", 1, None)
    check_schema(record)


def test_probe_that_raises_is_unavailable_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(_: System) -> None:
        raise RuntimeError("planted fault")

    replace_probe(monkeypatch, "cpu", explode)
    record = record_environment()
    content = record.to_dict()
    monkeypatch.undo()

    assert content["sections"]["cpu"] == {"unavailable": "RuntimeError: planted fault"}
    assert record.get("cpu.model") == "unavailable"
    assert record.reason("cpu.model") == "RuntimeError: planted fault"
    assert content["sections"]["memory"]["total_bytes"]
    reasons = {check["name"]: check["reason"] for check in content["isolation"]}
    assert reasons["governor"] == "cpu.governor is unavailable: RuntimeError: planted fault"
    check_schema(record)


def test_unknown_names_are_told() -> None:
    record = record_environment()

    assert record.reason("cpu.colour") == "the section 'cpu' has no field 'colour'"
    assert record.reason("moon.phase") == "there is no section 'moon'"
    assert record.get("moon.phase") == "unavailable"


def test_secrets_in_the_environment_do_not_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["TF_VAR_password", "AWS_SECRET_ACCESS_KEY", "OMP_SECRET", "MKL_TOKEN", "SLURM_JWT", "PYTHONSECRET", "PS1"]
    names += ["OPENBLAS_KEY", "CUDA_PASSWORD", "NCCL_SECRET", "GITHUB_TOKEN", "container", "KUBERNETES_SERVICE_HOST"]
    for name in names:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    text = json.dumps(record_environment().to_dict())

    assert '"OMP_NUM_THREADS": "3"' in text
    assert SECRET not in text


def test_strict_refuses_a_machine_that_fails(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write_groups_v2(tmp_path)
    write(tmp_path, f"{CPU}/cpufreq/policy0/scaling_governor", "powersave")

    with pytest.raises(IsolationError, match="governor: the frequency is governed by performance, powersave") as caught:
        record_environment(strict=True, observation_s=0, system=system)

    assert "governor" in [check.name for check in caught.value.failed]
    assert "governor" in [check.name for check in record_environment(system=system).failed]


def test_strict_accepts_a_machine_that_cannot_be_read(tmp_path: Path) -> None:
    record = record_environment(strict=True, observation_s=0, system=System(tmp_path, {}))

    assert record.failed == ()


def test_observation_lasts_as_long_as_asked() -> None:
    record = record_environment(observation_s=0.3)

    assert record.noise.elapsed_s >= 0.29
    assert record.elapsed_s >= record.noise.elapsed_s


def test_record_imports_no_framework_and_changes_no_variable(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "before = dict(os.environ)\n"
        "from deep500.measure.environment import record_environment\n"
        "record_environment()\n"
        "heavy = {'torch', 'tensorflow', 'keras', 'mpi4py', 'cupy', 'jax', 'scipy', 'sklearn', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), dict(os.environ) == before)\n"
    )

    done = run_python("-c", script, cwd=tmp_path)

    assert done.stdout == "[] True\n", done.stderr
