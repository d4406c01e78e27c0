"""One operator that a user wrote, alone."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.frameworks import offered
from deep500.measure.workload import Scalar, Score, Work, Workload, WorkloadSpec
from deep500.operators.custom import CustomOp, NativeOp
from deep500.operators.custom.findings import random_gradients
from deep500.operators.operator import OptionalArray
from deep500.recipe.describe import describe
from deep500.recipe.resolve import load_framework
from deep500.workloads._accuracy import error_score
from deep500.workloads._batches import hash_batches
from deep500.workloads._frameworks import REFERENCE, framework_factors
from deep500.workloads._operator_check.functions import framework_function
from deep500.workloads._operator_check.inputs import dtypes_of, example_inputs, read_descriptor
from deep500.workloads._operator_check.operator_file import OperatorFile, open_operator_file
from deep500.workloads._operator_check.spec import OWN_OPTIONS, read_name
from deep500.workloads._options import Options

__all__ = ["custom"]


def custom(spec: WorkloadSpec) -> Workload:
    """One custom operator of a file, called as a function of a framework's tensors that lie on the device.

    The text is ``custom:FILE[:NAME][,attribute=value]...[@FRAMEWORK[:DEVICE]]``, such as
    ``custom:ops.py:IPow,power=3@pytorch``. FILE is a Python file with classes or objects of operators, or a C++ or CUDA
    file; NAME is the class, the object or the operator, and may be left out where there is one. It is compiled before
    the runs.

    Options, whose names have a point so that they are no attributes:

    - ``call.mode``: ``forward``, or ``gradient`` for forward and the gradients by all inputs;
    - ``call.size``: ``small`` or ``large`` inputs, which the operator's ``example_inputs`` returns, or are made up;
    - ``call.inputs``: their shapes instead, ``[2x3,4:int64]``;
    - ``call.dtype``: the dtype, by default the operator's first; ``call.seed`` (0) of the values;
    - ``call.against``: a function of the framework to call instead, ``package.module:function``, or ``own`` for the one
      that the operator names (``framework_function``).

    The score is the L2 error of the outputs (and gradients), relative to those of the operator in NumPy.

    Raises:
        Deep500Error: There is no such file, operator, framework or function, or it does not compile.
    """
    options = Options(spec)
    mode = options.choice("call.mode", "forward", ("forward", "gradient"))
    size = options.choice("call.size", "small", ("small", "large"))
    against, seed = options.text("call.against", None), options.take("call.seed", 0, _seed, "a whole number from 0")
    dtype = options.text("call.dtype", None)
    given = options.take("call.inputs", None, functools.partial(_shapes, dtype=dtype), "shapes, such as [2x3,4:int64]")
    path, name = read_name(spec)
    file = open_operator_file(path, given)
    chosen = _chosen(file, name, spec)
    attributes = options.rest(file.attribute_names(chosen) if _any_attribute(spec) else [])
    options.finish()
    op = file.open(chosen, attributes)
    inputs = example_inputs(op, dtype or dtypes_of(op, given)[0], size, given=given, seed=seed)  # type: ignore[arg-type]
    if inputs is None:
        raise MeasurementError(f"{spec.text!r} asks for large inputs, and the shapes of {op.name} are fixed.")
    return _Calls(spec, (path, chosen), op, inputs, mode, seed, against)


class _Calls(Workload):
    """Calls of one operator, or of a function that does the same; see :func:`custom`."""

    def __init__(
        self,
        spec: WorkloadSpec,
        source: tuple[Path, str],
        op: CustomOp,
        inputs: Sequence[OptionalArray],
        mode: str,
        seed: int,
        against: str | None,
    ) -> None:
        self._op, self._source, self._inputs, self._mode = op, source, inputs, mode
        self._framework = spec.framework or REFERENCE
        load_framework(self._framework)
        prepare_call = offered(self._framework, "prepare_call")
        self._function = None
        if against is not None:
            self._function = framework_function(op, self._framework, None if against == "own" else against)
            if self._function is None:
                raise MeasurementError(
                    f"{spec.text!r}: {op.name} names no function of {self._framework} that does the same; accepted is "
                    f"call.against=package.module:function."
                )
        self._expected = op.run_forward(inputs)
        self._gradients = None
        if mode == "gradient":
            op.check_differentiable()
            self._gradients = random_gradients(self._expected, np.random.default_rng(seed))
        called = op if self._function is None else self._function.call
        self._call = prepare_call(called, inputs, output_gradients=self._gradients, device=spec.device)
        self.__dict__["run"] = self._call.run  # in the place of the method: a call less in each run

    def run(self) -> Any:
        """Call the operator."""
        return self.__dict__["run"]()

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self._call.synchronize()

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """The operator's name and attributes, its inputs, and whether gradients are computed.

        Nobody but the user knows whether two operators compute the same: a comparison of two is allowed.
        """
        return {
            "problem": "custom operator",
            "operator": self._op.name,
            "attributes": describe(dict(self._op.attributes)),
            "inputs": ["absent" if x is None else str(TensorDescriptor(x.dtype, x.shape)) for x in self._inputs],
            "mode": self._mode,
            "alternatives_allowed": True,
        }

    @functools.cached_property
    def factors(self) -> Mapping[str, Scalar]:
        """Framework, version, device, settings, what is called, and the SHA-256 of its source and its library."""
        path, name = self._source
        library = self._op.library.path if isinstance(self._op, NativeOp) else None
        return {
            **framework_factors(self._framework, self._call.device),
            "implementation": f"{path.name}:{name}" if self._function is None else self._function.name,
            "source_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "library_sha256": None if library is None else hashlib.sha256(library.read_bytes()).hexdigest(),
            "io": "the framework's tensors, on the device",
        }

    @functools.cached_property
    def data_hash(self) -> str:
        """SHA-256 over the values of the inputs."""
        return hash_batches([{f"input {index}": x for index, x in enumerate(self._inputs) if x is not None}])

    @property
    def work(self) -> Work:
        """The bytes of inputs and outputs; of gradients twice as many. Nobody knows what an operator computes."""
        tensors = [x for x in (*self._inputs, *self._expected) if x is not None]
        moved = sum(x.nbytes for x in tensors) * (1 if self._mode == "forward" else 2)
        return Work(None, "item", None, moved, tensors[0].dtype.name if tensors else None)

    def scores(self) -> list[Score]:
        """Return how far the results are from those of the operator in NumPy."""
        found: list[NDArray[Any]] = list(self._call.outputs())
        expected = list(self._expected)
        if self._gradients is not None:
            wanted = self._op.run_backward(self._gradients, self._inputs, self._expected)
            for gradient, reference in zip(self._call.gradients(), wanted):
                if reference is not None:
                    expected.append(reference)
                    found.append(np.zeros_like(reference) if gradient is None else gradient)
        return [error_score("L2 relative error to the reference", found, expected)]


def _chosen(file: OperatorFile, name: str | None, spec: WorkloadSpec) -> str:
    if name is not None:
        return file.check_name(name)
    if len(file.names) > 1:
        raise MeasurementError(
            f"{spec.text!r} names no operator, and its file has several: {', '.join(file.names)}. Accepted is "
            f"custom:FILE:NAME."
        )
    return file.names[0]


def _any_attribute(spec: WorkloadSpec) -> bool:
    """Whether a text has options that may be attributes."""
    return any(key not in OWN_OPTIONS for key in spec.options)


def _seed(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError
    return value


def _shapes(value: Any, *, dtype: str | None) -> list[TensorDescriptor]:
    """Return what ``[2x3,4:int64]`` describes."""
    if isinstance(value, str) and value[:1] in ("[", "(") and value[-1:] in ("]", ")"):
        value = [part.strip() for part in value[1:-1].split(",")]
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(shown(value))
    return [read_descriptor(str(part), dtype or "float32") for part in value]
