"""Sessions of ONNX Runtime: one for each model that an executor runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnxruntime as ort

from deep500.core.device import Device
from deep500.core.errors import DeviceError, InvalidInputError, InvalidNetworkError, UnsupportedOperatorError
from deep500.core.texts import message_of
from deep500.frameworks.onnxruntime._arrays import from_value, is_extended_type, to_value
from deep500.frameworks.onnxruntime._integers import without_traps
from deep500.frameworks.onnxruntime.determinism import is_deterministic
from deep500.frameworks.onnxruntime.device import execution_providers

__all__ = ["Session"]

#: Size from which a message of protobuf is not written; the runtime reads models as such messages.
_LARGEST_BYTES = 2**31 - 1

#: What goes wrong is raised; it is not written to the standard error output as well.
_LOG_FATAL = 4


class Session:
    """A model that ONNX Runtime has prepared.

    Attributes:
        outputs: Names of the outputs.
    """

    def __init__(self, model: onnx.ModelProto, device: Device) -> None:
        """Prepare a model.

        Args:
            model: The model.
            device: Where it is to run.

        Raises:
            DeviceError: ONNX Runtime has nothing for the device.
            InvalidNetworkError: It refuses the model.
            UnsupportedOperatorError: It has no kernel for an operator.
        """
        self._name = model.graph.name
        if model.ByteSize() > _LARGEST_BYTES:
            raise UnsupportedOperatorError(
                f"Network {self._name!r} has {model.ByteSize():,} bytes; ONNX Runtime is given models of up to "
                f"{_LARGEST_BYTES:,} bytes here."
            )
        options = ort.SessionOptions()
        options.log_severity_level = _LOG_FATAL
        # One thread for each processor that this process may use; the runtime would take all of the machine.
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        options.use_deterministic_compute = is_deterministic()
        providers = execution_providers(device)
        try:
            self._session = ort.InferenceSession(without_traps(model).SerializeToString(), options, providers=providers)
        except Exception as error:
            # The runtime's exceptions have no public base.
            raise _explained_model(model, error) from error
        self.outputs = [value.name for value in self._session.get_outputs()]
        self._inputs = {value.name for value in self._session.get_inputs()}
        kinds = [value.type for value in (*self._session.get_inputs(), *self._session.get_outputs())]
        self._has_extended = any(map(is_extended_type, kinds))

    def run(self, values: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
        """Run the model.

        Args:
            values: Arrays, lists of them or ``None`` by name; names that the model does not read are ignored.
            wanted: Names of the outputs to return.

        Raises:
            DeviceError: The device has not enough memory.
            InvalidInputError: The runtime refuses the inputs.
            UnsupportedOperatorError: It has no kernel for a case that only shows now.
        """
        feeds = {name: value for name, value in values.items() if name in self._inputs}
        try:
            if not self._has_extended:
                results: list[Any] = self._session.run(list(wanted), feeds)
                return results
            found = self._session.run_with_ort_values(list(wanted), {k: to_value(v) for k, v in feeds.items()})
            return [from_value(value) for value in found]
        except Exception as error:
            # The runtime's exceptions have no public base.
            raise _explained_run(self._name, error) from error


def _explained_model(model: onnx.ModelProto, error: Exception) -> Exception:
    name, why = model.graph.name, message_of(error)
    unknown = re.search(r"(\S+):(\w+)\(-?\d+\) is not a registered function/op", why)
    if unknown is not None:
        domain, operator = unknown.groups()
        versions = {entry.domain: entry.version for entry in model.opset_import}
        nodes = [node for node in model.graph.node if (node.domain or "ai.onnx", node.op_type) == (domain, operator)]
        place = f"node {nodes[0].name!r} " if nodes else ""
        return UnsupportedOperatorError(
            f"ONNX Runtime {ort.__version__} does not know {place}({domain}::{operator}, version "
            f"{versions.get('' if domain == 'ai.onnx' else domain, 1)}) of {name!r}."
        )
    if "NOT_IMPLEMENTED" in why or "not supported" in why or "is not a registered function/op" in why or "opset" in why:
        return UnsupportedOperatorError(f"ONNX Runtime {ort.__version__} cannot run {name!r}: {why}")
    return InvalidNetworkError(f"ONNX Runtime {ort.__version__} refuses {name!r}: {why}")


def _explained_run(name: str, error: Exception) -> Exception:
    why = message_of(error)
    if "NOT_IMPLEMENTED" in why or "not supported" in why or "not implemented" in why.lower():
        return UnsupportedOperatorError(f"ONNX Runtime has no kernel to run {name!r}: {why}")
    if "Failed to allocate memory" in why or "out of memory" in why:
        return DeviceError(f"The device has not enough memory to run {name!r}: {why}")
    return InvalidInputError(f"ONNX Runtime cannot run {name!r} on these inputs: {why}")
