"""Custom operators as operators of TensorFlow, and functions of TensorFlow as custom operators.

An operator that is written in C++ or CUDA is a node of the graph like TensorFlow's own: it is differentiated, traced
by ``tf.function`` with static or dynamic shapes, and stored in a SavedModel. The process that loads such a model says
first what those nodes are::

    from deep500.frameworks.tensorflow import load_custom_operators

    load_custom_operators()
    model = tf.saved_model.load("model")

The model holds the path of the operator's library, not the library. Where that is not there (another machine, an
emptied cache), the operator is built again and given: ``load_custom_operators(operator)``. A saved model is a program:
load only those that you trust.

An operator that is written in Python runs eagerly and in graphs of its own process; TensorFlow does not save it.
Neither kind is compiled by XLA (``jit_compile=True``): that is refused when the function is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.frameworks.tensorflow._native_adapter import load_adapter, provide_library
from deep500.frameworks.tensorflow._native_operator import native_operation
from deep500.frameworks.tensorflow._python_operator import python_operation
from deep500.frameworks.tensorflow._wrapped_operator import TensorFlowOp
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.custom.native_op import NativeOp

__all__ = ["custom_op", "custom_op_from_native", "load_custom_operators"]


def custom_op(op: CustomOp) -> Callable[..., Any]:
    """Return a custom operator as a function of TensorFlow's tensors.

    It takes one tensor an input (``None`` for optional ones that are absent) and returns a tensor, or a tuple where the
    operator has several outputs. It is differentiable if the operator has a backward; a second derivative is right if
    the library has a ``second``, and an error otherwise.

    Args:
        op: The operator; its attributes are read now.

    Raises:
        CompileError: The operator, or the adapter, cannot be compiled.
        OperatorError: It is no custom operator. The function that is returned raises it for inputs that the operator
            refuses and for what goes wrong within it; in a ``tf.function``, TensorFlow raises ``tf.errors.OpError``.
    """
    if isinstance(op, TensorFlowOp):
        return op.run_native
    if isinstance(op, NativeOp):
        return native_operation(op)
    if isinstance(op, CustomOp):
        return python_operation(op)
    raise OperatorError(
        f"custom_op was given {shown(op)}; accepted are CustomPythonOp, CppOp, what compile_custom_cppop returns and "
        f"what custom_op_from_native returns, as objects, not as classes."
    )


def custom_op_from_native(
    function: Callable[..., Any],
    inputs: Sequence[TensorDescriptor] | None = None,
    outputs: Sequence[TensorDescriptor] | None = None,
    *,
    name: str | None = None,
) -> CustomOp:
    """Return a function of TensorFlow as a custom operator, to validate it and to measure it.

    The operator takes NumPy arrays and returns NumPy arrays; TensorFlow's tensors stay what they are. Its backward
    records the function again on a ``tf.GradientTape``.

    Args:
        function: Takes one tensor an input, and returns a tensor or several, such as ``tf.matmul``.
        inputs: Dtype and shape of the inputs, where they are fixed.
        outputs: The same of the outputs; needed where there are several.
        name: Name of the operator; by default the function's.

    Raises:
        OperatorError: ``function`` cannot be called.

    Example:
        >>> import numpy as np
        >>> import tensorflow as tf
        >>> product = custom_op_from_native(tf.matmul)
        >>> product(np.ones((2, 3)), np.ones((3, 1)))
        array([[3.],
               [3.]])
    """
    return TensorFlowOp(function, inputs, outputs, name)


def load_custom_operators(*operators: CustomOp) -> None:
    """Tell TensorFlow what the nodes of custom operators are, before a SavedModel that holds some is loaded.

    Args:
        operators: Operators that are written in C++ or CUDA, whose libraries stand in for those that a model names
            and this machine does not have. They are found by name.

    Raises:
        CompileError: An operator, or the adapter, cannot be compiled.
        OperatorError: One of them is not written in C++ or CUDA.
    """
    load_adapter()
    for op in operators:
        if not isinstance(op, NativeOp):
            raise OperatorError(
                f"load_custom_operators was given {shown(op)}; accepted are operators that are written in C++ or CUDA. "
                f"TensorFlow saves no others."
            )
        provide_library(op.library)
