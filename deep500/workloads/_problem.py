"""Problems of problem sets as workloads: the framework's own function, natively or wrapped as an operator."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device, parse_device
from deep500.core.errors import MeasurementError, UnsupportedOperatorError
from deep500.core.random import random_stream
from deep500.frameworks import offered
from deep500.measure.workload import Scalar, Score, Work, Workload, WorkloadSpec
from deep500.networks.random_inputs import random_tensor
from deep500.operators.problem_reference import ReferencePart, reference_part
from deep500.operators.problem_set import ProblemSet
from deep500.operators.problems import Problem
from deep500.recipe.resolve import load_framework
from deep500.workloads._accuracy import error_score
from deep500.workloads._batches import hash_batches
from deep500.workloads._frameworks import REFERENCE, framework_factors
from deep500.workloads._options import Options

__all__ = ["DTYPES", "FORMS", "check_measurable", "problem_workload"]

#: How the framework's function is called: as it is, or as an operator of Deep500.
FORMS = ("native", "wrapped")

#: Dtypes that problems can have.
DTYPES = ("float16", "bfloat16", "float32", "float64")


def problem_workload(spec: WorkloadSpec, problem_set: ProblemSet) -> Workload:
    """Return a problem of a set as a workload.

    Args:
        spec: Its text; the name is that of the operator.
        problem_set: The set.

    Raises:
        Deep500Error: There is no such problem, framework or device, or the framework cannot compute it.
    """
    problems = problem_set.problems(spec.name)
    options = Options(spec)
    number = options.count("size", None)
    form = options.choice("form", FORMS[0], FORMS)
    dtype = options.choice("dtype", "float32", DTYPES)
    seed = options.seed()
    options.finish()
    if number is None:
        raise MeasurementError(
            f"{spec.text!r} names no size; accepted is size=N with N from 1 to {len(problems)}. They are listed by "
            f"deep500 bench {spec.kind} --op {spec.name} --list"
        )
    problem = problem_set.problem(spec.name, number)
    check_measurable(f"{spec.kind}:{spec.name}", problem)
    shared = _shared(spec.framework or REFERENCE, parse_device(spec.device), problem, dtype, seed)
    return _ProblemWorkload(f"{spec.kind}:{spec.name}", shared, form)


def check_measurable(name: str, problem: Problem) -> None:
    """Check that one process can compute a problem.

    Args:
        name: What messages call it.
        problem: The problem.

    Raises:
        UnsupportedOperatorError: It takes several that exchange data.
    """
    if problem.is_distributed:
        raise UnsupportedOperatorError(
            f"{name} needs several processes that exchange data, and this Deep500 has no communication between "
            f"processes yet. Its sizes can be listed (--list)."
        )


class _Shared:
    """A problem with its values, on one device of one framework; both forms of one process have it in common.

    Had each its own tensors, where these happen to lie in memory would be part of the difference between the forms,
    and large problems would need twice the memory.
    """

    def __init__(self, framework: str, device: Device, problem: Problem, dtype: str, seed: int) -> None:
        adapter = load_framework(framework)
        make = offered(framework, "problem_function")
        self.framework, self.device, self.problem, self.dtype = framework, device, problem, dtype
        self.arrays = {name: _drawn(problem, name, dtype, seed) for name in problem.inputs(dtype)}
        self.native = make(problem, self.arrays, device)
        operator = adapter.custom_op_from_native(self.native.function, name=type(problem).__name__)
        self.functions = {"native": self.native.function, "wrapped": adapter.custom_op(operator)}

    @functools.cached_property
    def data_hash(self) -> str:
        """SHA-256 over the values of the inputs."""
        return hash_batches([self.arrays])

    @functools.cached_property
    def expected(self) -> ReferencePart | None:
        """What NumPy makes of it."""
        return reference_part(self.problem, self.arrays)


_IN_USE: weakref.WeakValueDictionary[tuple[Any, ...], _Shared] = weakref.WeakValueDictionary()


def _shared(*key: Any) -> _Shared:
    """Return what a workload that is still open has of the same problem, or make it."""
    found = _IN_USE.get(key)
    if found is None:
        found = _IN_USE[key] = _Shared(*key)
    return found


class _ProblemWorkload(Workload):
    """Runs of one problem in one form."""

    def __init__(self, name: str, shared: _Shared, form: str) -> None:
        self._name, self._shared, self._form = name, shared, form
        # The function itself in the place of the method: no call of ours is part of a run.
        self.__dict__["run"] = functools.partial(shared.functions[form], *shared.native.inputs)

    def run(self) -> Any:
        """Compute the problem."""
        return self.__dict__["run"]()

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        wait = self._shared.native.synchronize
        if wait is not None:
            wait()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The operator, its sizes and the dtype; the form is a factor, for both do the same work."""
        return {"problem": self._name, **self._shared.problem.sizes, "dtype": self._shared.dtype}

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """The form, framework, version, device and settings."""
        shared = self._shared
        return {
            **framework_factors(shared.framework, shared.device),
            "form": self._form,
            "io": "the framework's tensors, on the device",
        }

    @property
    def data_hash(self) -> str:
        """SHA-256 over the values of the inputs."""
        return self._shared.data_hash

    @property
    def work(self) -> Work:
        """Floating-point operations, and the bytes of all inputs and of the output."""
        problem, dtype = self._shared.problem, self._shared.dtype
        return Work(None, "item", problem.flops, problem.size_bytes(dtype), dtype)

    def scores(self) -> list[Score]:
        """Return how far the result, or a part of it, is from NumPy's; nothing where NumPy does not compute it."""
        expected = self._shared.expected
        if expected is None:
            return []
        output = self._shared.native.to_numpy(self.run())
        part = output[expected.index].astype(expected.values.dtype, copy=False)
        return [error_score("L2 relative error to the reference", [part], [expected.values])]

    def close(self) -> None:
        """Let go of the tensors, which may be gigabytes, whoever still holds the workload."""
        self.__dict__.pop("run", None)
        self.__dict__.pop("_shared", None)


def _drawn(problem: Problem, name: str, dtype: str, seed: int) -> NDArray[Any]:
    values = random_tensor(problem.inputs(dtype)[name], random_stream(seed, "workload", "problem", name))
    products = problem.fan_in(name)
    if products > 1:
        values *= np.asarray(1.0 / math.sqrt(products), values.dtype)
    return values
