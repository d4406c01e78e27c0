"""The library of the generic operation: built once for each version of TensorFlow, with the gradients it needs."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.core.texts import shown_path
from deep500.frameworks.tensorflow._errors import operator_error
from deep500.operators.native import LibraryDescription, NativeLibrary, compile_library

__all__ = ["load_adapter", "placement", "provide_library"]

#: Libraries that stand in for those that a saved model names and this machine does not have, by operator.
_provided: dict[str, NativeLibrary] = {}

#: What is differentiated, and the function of the library that does it.
_NEXT = {"forward": "backward", "backward": "second", "second": "third", "third": "third"}


@functools.cache
def load_adapter() -> Any:
    """Return the module of the generic operations, with their gradients registered.

    Raises:
        CompileError: There is no compiler, or it fails.
    """
    folder = Path(__file__).resolve().parent
    flags = []
    for flag in tf.sysconfig.get_compile_flags():
        # As folders of the system, so that TensorFlow's headers are neither warned of nor watched for changes.
        flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
    library = compile_library(
        [folder / "_custom_operator.cpp"],
        "deep500_tensorflow",
        flags=flags,
        link_flags=[*tf.sysconfig.get_link_flags(), "-ldl"],
        depends_on=["tensorflow", tf.version.VERSION, tf.version.GIT_VERSION],
        native=False,  # TensorFlow's headers do not compile for every processor
    )
    module = tf.load_op_library(os.fspath(library))
    tf.RegisterGradient("Deep500Call")(_call_gradient)
    tf.RegisterGradient("Deep500Gradient")(_gradient_gradient)
    provide = ctypes.CDLL(os.fspath(library)).deep500_provide_library
    provide.argtypes, provide.restype = [ctypes.c_char_p, ctypes.c_char_p], None
    module.deep500_provide_library = provide
    return module


def provide_library(library: NativeLibrary) -> None:
    """Let a library stand in wherever a saved model names one of the same operator that is not there."""
    _provided[library.name] = library
    load_adapter().deep500_provide_library(library.name.encode(), os.fsencode(library.path))


def placement(description: LibraryDescription) -> contextlib.AbstractContextManager[Any]:
    """Return the scope in which an operator is called: one without code for CUDA is kept off GPUs.

    In a graph always, since it may be saved and run where there is a GPU.
    """
    is_free = "cuda" in description.devices or (tf.executing_eagerly() and not tf.config.get_visible_devices("GPU"))
    return contextlib.nullcontext() if is_free else tf.device("/CPU:0")


@functools.lru_cache(maxsize=256)
def _description(path: str, name: str) -> LibraryDescription:
    """Return what the library says that a node names, or the one that stands in for it."""
    if os.path.exists(path):
        return NativeLibrary(path, name).description
    if name in _provided:
        return _provided[name].description
    raise OperatorError(  # the kernel says the same
        f"Deep500 operator {name!r} has no library here: {shown_path(path)} is not there. A saved model holds the path "
        f"of the library that it was saved with; where that has moved, build the operator and call "
        f"load_custom_operators(operator) before the model is loaded."
    )


def _call_gradient(op: Any, *grads: Any) -> list[Any]:
    """Differentiate the forward; ``op`` is its node."""
    node = _Node(op)
    description = _description(node.path, node.name)
    absent = [None] * len(op.outputs)
    outputs = list(op.outputs) if description.gradient_needs_outputs else absent
    if description.gradient_needs_inputs or tf.executing_eagerly():  # eagerly, they are kept in any case
        return node.differentiate("forward", grads, [*node.inputs, *outputs], description)
    return node.differentiate("forward", grads, [*([None] * len(node.inputs)), *outputs], description)


def _gradient_gradient(op: Any, *grads: Any) -> list[Any]:
    """Differentiate the backward, or the backward of the backward; ``op`` is its node."""
    node = _Node(op)
    rest = iter(grads)
    everything = [next(rest) if is_there else None for is_there in op.get_attr("wanted")]
    function = tf.compat.as_str(op.get_attr("function"))
    return node.differentiate(function, everything, node.inputs, _description(node.path, node.name))


class _Node:
    """A node of a generic operation that is differentiated."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.path = tf.compat.as_str(op.get_attr("library"))
        self.name = tf.compat.as_str(op.get_attr("operator"))
        tensors = list(op.inputs[: len(op.inputs) - op.get_attr("N")])
        given = op.get_attr("given") or [True] * len(tensors)
        #: Where each input of the node is among all inputs of the function.
        self.places = [place for place, is_there in enumerate(given) if is_there]
        #: All inputs of the function, ``None`` for those that are absent.
        self.inputs: list[Any] = [None] * len(given)
        for place, tensor in zip(self.places, tensors):
            self.inputs[place] = tensor

    def differentiate(
        self, function: str, grads: Sequence[Any], operands: Sequence[Any], description: LibraryDescription
    ) -> list[Any]:
        """Return the gradient by every input of the node, shapes included.

        Args:
            function: The function of the library that the node calls.
            grads: The gradient by every output of that function; ``None`` where nobody knows it.
            operands: What its derivative is given besides, ``None`` where it needs nothing.
            description: What the library says of the operator.
        """
        skipped = getattr(self.op, "skip_input_indices", None) or ()
        wanted = [
            place
            for index, place in enumerate(self.places)
            if index not in skipped and _has_gradient(self.inputs[place])
        ]
        known = [None if grad is None or not _has_gradient(grad) else tf.convert_to_tensor(grad) for grad in grads]
        if not wanted or all(grad is None for grad in known):
            return [None] * len(self.op.inputs)
        everything = [*known, *operands]
        models = [self.inputs[place] for place in wanted]
        is_shaped = all(everything[len(known) + place] is not None for place in wanted)
        try:
            with placement(description):
                gradients = load_adapter().deep500_gradient(
                    [x for x in everything if x is not None],
                    [] if is_shaped else [tf.shape(x, out_type=tf.int64) for x in models],
                    [x.dtype for x in models],
                    library=self.path,
                    operator=self.name,
                    attributes=self.op.get_attr("attributes"),
                    given=[x is not None for x in everything],
                    function=_NEXT[function],
                    missing=not _has(description, _NEXT[function]),
                    wanted=[place in wanted for place in range(len(self.inputs))],
                    gradients=len(known),
                )
        except tf.errors.OpError as error:
            raise operator_error(self.name, error) from error
        by_place = dict(zip(wanted, gradients))
        shapes = len(self.op.inputs) - len(self.places)
        return [*[by_place.get(place) for place in self.places], *[None] * shapes]


def _has(description: LibraryDescription, function: str) -> bool:
    """Whether a library has a function; it may export one that does nothing but fail."""
    return {"backward": description.differentiable, "second": description.twice_differentiable}.get(function, False)


def _has_gradient(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)
