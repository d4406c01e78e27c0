"""The contract of an operator that a user writes: once, for every framework."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.texts import message_of, shown
from deep500.operators.custom._checks import (
    AttributeValue,
    InferredTypes,
    Shape,
    as_array,
    as_tuple,
    attribute_value,
    check_name,
    checked_gradients,
    checked_types,
    is_float_name,
    texts,
)
from deep500.operators.operator import Operator, OptionalArray

__all__ = ["CUSTOM_DOMAIN", "CustomOp", "CustomPythonOp"]

#: The ONNX domain of every operator that a user writes.
CUSTOM_DOMAIN = "deep500.custom"


class CustomOp(Operator):
    """An operator that a user writes; ``deep500.frameworks.<f>.custom_op(op)`` makes it one of the framework.

    :meth:`forward` and :meth:`backward` are what the author writes. Whoever runs the operator calls :meth:`run_forward`
    and :meth:`run_backward`, which return tuples and check what came back.

    Attributes:
        name: Name of the operator, a C identifier: the ``op_type`` of its node in a network. By default its class'.
        domain: The ONNX domain of that node.
        input_count: Number of inputs; ``None`` where any number is accepted.
        output_count: Number of outputs.
        differentiable: Whether it has a backward.
        gradient_needs: Whether the backward reads the forward's inputs, and whether it reads its outputs; what it does
            not read need not be kept, and may be handed over as ``None``.
    """

    name: str = "CustomOp"
    domain: ClassVar[str] = CUSTOM_DOMAIN
    input_count: int | None = None
    output_count: int = 1
    differentiable: bool = True
    gradient_needs: tuple[bool, bool] = (True, True)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Name the operator for its class unless the class says otherwise."""
        super().__init_subclass__(**keywords)
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if isinstance(cls.name, str):  # a property names each instance, and is checked with it
            check_name(cls.name)

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Values that belong to the operator, not to a call, by name; a network stores them in the operator's node.

        By default those parameters of the constructor that the instance keeps under the same name and that are whole
        numbers, numbers, texts, or lists of numbers.
        """
        if "_attributes" in vars(self):
            stored: Mapping[str, AttributeValue] = vars(self)["_attributes"]
            return stored
        found = {}
        for name in _parameters(type(self)):
            value = attribute_value(vars(self).get(name))
            if value is not None:
                found[name] = value
        return found

    @attributes.setter
    def attributes(self, values: Mapping[str, AttributeValue]) -> None:
        vars(self)["_attributes"] = dict(values)

    @property
    def infers(self) -> bool:
        """Whether the operator says itself what its outputs are like, instead of by the default of :meth:`infer`."""
        return type(self).infer is not CustomOp.infer or "infer" in vars(self)

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the outputs; by default every output is like the first input.

        Sizes may be a framework's symbolic sizes: use only ``+ - * //``, ``max`` and ``min`` on them.

        Args:
            shapes: Shape of every input, a tuple; ``None`` where the input is absent.
            dtypes: Name of every input's dtype, such as ``"float32"`` or ``"bfloat16"``; ``None`` where absent.

        Returns:
            The outputs' shapes and the outputs' dtypes, two lists.
        """
        if not shapes or shapes[0] is None:
            raise OperatorError(
                f"{self.name}: what the outputs are like cannot be told from the first input, since there is none. "
                f"Give the operator an infer(shapes, dtypes)."
            )
        return [shapes[0]] * self.output_count, [dtypes[0]] * self.output_count

    def infer_outputs(self, shapes: Sequence[Shape | None], dtypes: Sequence[str | None]) -> InferredTypes:
        """Return what :meth:`infer` says, checked: a tuple of shapes and a tuple of names of dtypes.

        Raises:
            OperatorError: The number of inputs is wrong, or :meth:`infer` fails or does not return shapes and dtypes
                of all outputs.
        """
        self.check_input_count(len(shapes))
        try:
            returned = self.infer([None if s is None else tuple(s) for s in shapes], list(dtypes))
        except Deep500Error:
            raise
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise OperatorError(
                f"{self.name}.infer failed for inputs of shapes {texts(shapes)} and dtypes {texts(dtypes)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return checked_types(self.name, self.output_count, returned)

    def check_input_count(self, count: int) -> None:
        """Check the number of inputs.

        Raises:
            OperatorError: It is not the operator's.
        """
        if self.input_count is not None and count != self.input_count:
            raise OperatorError(f"{self.name} was given {count} inputs; accepted are {self.input_count}.")

    def example_inputs(
        self, rng: np.random.Generator, dtype: str, large: bool = False
    ) -> Sequence[OptionalArray] | None:
        """Return inputs that show the operator at work, for ``deep500 op check`` and ``deep500 bench custom:...``.

        They should lie away from kinks and jumps, where there is no derivative to check. For an operator in C++ they
        are converted to the dtypes of its variant; one in Python gets them as they are.

        Args:
            rng: Where random values come from; the same values each time.
            dtype: Name of the dtype that is to be checked, such as ``"float32"`` or ``"bfloat16"``.
            large: Whether to return inputs of a size at which the operator's work, not its call, takes the time. An
                author may leave the parameter out; then one size is measured.

        Returns:
            One array an input, ``None`` where an optional one is to be absent. ``None`` alone, the default, has them
            made up: normally distributed, of the shapes that descriptors say, else of the shape (2, 3, 4).
        """
        return None

    def framework_function(self, framework: str) -> Callable[..., Any] | None:
        """Return a function of a framework's tensors that computes the same, to compare results and times with.

        Args:
            framework: Name of the framework, as ``deep500 list frameworks`` shows it.

        Returns:
            A function that takes one tensor an input; ``None``, the default, where there is none.
        """
        return None

    def run_forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Run :meth:`forward`; return a tuple of arrays, checked.

        Raises:
            OperatorError: The operator refuses the inputs, or did not return what it should.
        """
        self.check_input_count(len(inputs))
        return tuple(self.forward(inputs))

    def run_backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        """Run :meth:`backward`; return one gradient (or ``None``) an input, checked.

        Raises:
            OperatorError: The operator has no backward, refuses the tensors, or did not return what it should.
        """
        self.check_differentiable()
        return tuple(self.backward(grads, fwd_inputs, fwd_outputs))

    def check_differentiable(self) -> None:
        """Check that there is a backward.

        Raises:
            OperatorError: There is none.
        """
        if not self.differentiable:
            raise OperatorError(f"{self.name} cannot be differentiated: it has no backward.")

    def __call__(self, *inputs: Any) -> Any:
        """Run the operator on arrays; return the array when there is one output, else the tuple."""
        outputs = self.run_forward([None if x is None else as_array(x) for x in inputs])
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        """Return the name and the attributes."""
        values = ", ".join(f"{name}={shown(value)}" for name, value in self.attributes.items())
        return f"<{self.name}({values})>"


class CustomPythonOp(CustomOp):
    """An operator written in Python, on NumPy arrays (on a GPU perhaps on CuPy's, see ``array_module``).

    A subclass writes :meth:`forward`, either ``forward(self, inputs)`` with a list of arrays, or with a parameter for
    each of them (``forward(self, x, weight)``), and :meth:`backward`. Both return one array, or a tuple of several.

    Attributes:
        array_module: ``"cupy"`` where forward and backward can work on CuPy arrays, which saves copies on a GPU.

    Example:
        >>> class Square(CustomPythonOp):
        ...     def forward(self, x):
        ...         return x * x
        ...     def backward(self, grads, fwd_inputs, fwd_outputs):
        ...         return 2 * grads[0] * fwd_inputs[0]
        >>> Square()(np.array([1.0, 3.0]))
        array([1., 9.])
    """

    array_module: ClassVar[str] = "numpy"

    #: Whether it runs as a node of a network, which relies on what :meth:`infer` says by default, and whose user, who
    #: may not be the author, is told which operator failed.
    in_network: bool = False

    def __init__(self, input_descriptors: Any = None, output_descriptors: Any = None) -> None:
        """Take the descriptors that the published Deep500 asked for; none are needed.

        Args:
            input_descriptors: One :class:`~deep500.core.tensor_descriptor.TensorDescriptor` an input.
            output_descriptors: The same for the outputs; their number becomes ``output_count``.
        """
        if input_descriptors is not None:
            self.input_count = len(input_descriptors)
        if output_descriptors is not None:
            self.output_count = len(output_descriptors)
        self.input_descriptors = input_descriptors
        self.output_descriptors = output_descriptors

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Find out whether there is a backward, and how many inputs the forward names."""
        super().__init_subclass__(**keywords)
        if "differentiable" not in vars(cls):
            cls.differentiable = cls.backward is not CustomPythonOp.backward
        if "forward" in vars(cls) and "input_count" not in vars(cls):
            cls.input_count = _input_count(cls)

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Compute the outputs; see the class. It must not modify its inputs."""
        raise OperatorError(f"{self.name} has no forward(self, inputs).")

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        """Compute the gradients by the inputs.

        Args:
            grads: A list: the gradient of the loss by every output; zeros where the loss does not depend on it.
            fwd_inputs: A list: the inputs of :meth:`forward`.
            fwd_outputs: A list: what it returned.

        Returns:
            The gradient by the input, of its shape; with several inputs a tuple, ``None`` for inputs by which the
            operator is not differentiable.
        """
        raise OperatorError(f"{self.name} has no backward(self, grads, fwd_inputs, fwd_outputs).")

    def run_forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Run :meth:`forward` in the author's call style; see :meth:`CustomOp.run_forward`."""
        try:
            result = self._listed(inputs) if _takes_list(type(self)) else self._spread(inputs)
        except Deep500Error:
            raise
        except Exception as error:  # the author's code may raise anything
            if not self.in_network:
                raise
            raise OperatorError(f"{self.name}.forward failed: {type(error).__name__}: {message_of(error)}") from error
        outputs = as_tuple(result)
        _check_outputs(self, inputs, outputs)
        return outputs

    def run_backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        """Run :meth:`backward`; see :meth:`CustomOp.run_backward`.

        Gradients that nobody knows are handed over as zeros; gradients by integers are dropped; those of another float
        dtype than the input are converted to it.
        """
        self.check_differentiable()
        known = [
            np.zeros_like(y) if g is None and y is not None and is_float_name(y.dtype.name) else g
            for g, y in zip([*grads, *[None] * (len(fwd_outputs) - len(grads))], fwd_outputs)
        ]
        try:
            result = self.backward(known, list(fwd_inputs), list(fwd_outputs))
        except Deep500Error:
            raise
        except Exception as error:  # as in the forward
            if not self.in_network:
                raise
            raise OperatorError(f"{self.name}.backward failed: {type(error).__name__}: {message_of(error)}") from error
        return checked_gradients(self.name, as_tuple(result), fwd_inputs, are_given=self.gradient_needs[0])

    def _listed(self, inputs: Sequence[OptionalArray]) -> Any:
        self.check_input_count(len(inputs))
        return self.forward(list(inputs))

    def _spread(self, inputs: Sequence[OptionalArray]) -> Any:
        if self.input_count not in (None, len(inputs)):
            self._check_parameters(inputs)
            self.check_input_count(len(inputs))
        try:
            return self.forward(*inputs)
        except TypeError:  # asking before takes longer than a small call
            self._check_parameters(inputs)
            raise

    def _check_parameters(self, inputs: Sequence[OptionalArray]) -> None:
        try:
            inspect.signature(self.forward).bind(*inputs)
        except TypeError as error:
            raise OperatorError(
                f"{self.name}.forward{inspect.signature(self.forward)} cannot take {len(inputs)} inputs: {error}. "
                f"Give it one parameter for each input, or a single one named 'inputs' for a list of all."
            ) from error


@cache
def _parameters(operator: type) -> tuple[str, ...]:
    """Return the names of the constructor's parameters."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(operator).parameters.values()
    return tuple(p.name for p in parameters if p.kind in kinds and p.name not in _DESCRIPTORS)


_DESCRIPTORS = ("input_descriptors", "output_descriptors")


@cache
def _takes_list(operator: type[CustomPythonOp]) -> bool:
    """Whether ``forward`` has a single parameter ``inputs`` for the list of all inputs."""
    function: Callable[..., Any] = operator.forward
    parameters = list(inspect.signature(function).parameters.values())[1:]
    named = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return len(named) == len(parameters) == 1 and named[0].name == "inputs"


def _input_count(operator: type[CustomPythonOp]) -> int | None:
    """Return the number of inputs that ``forward`` has a parameter for; ``None`` where it can take several numbers."""
    if _takes_list(operator):
        return None
    parameters = list(inspect.signature(operator.forward).parameters.values())[1:]
    required = all(
        p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and p.default is inspect.Parameter.empty for p in parameters
    )
    return len(parameters) if required else None


def _check_outputs(op: CustomPythonOp, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    if len(outputs) != op.output_count or any(y is None for y in outputs):
        received = f"{len(outputs)} outputs" if len(outputs) != op.output_count else "None instead of an array"
        raise OperatorError(
            f"{op.name}.forward returned {received}; accepted are {op.output_count} arrays. Set output_count in the "
            f"class where an operator has several outputs."
        )
    if not op.infers and not (op.in_network and op.output_count == 1):
        return
    shapes, dtypes = op.infer_outputs(
        [None if x is None else x.shape for x in inputs], [None if x is None else x.dtype.name for x in inputs]
    )
    for index, (y, shape, dtype) in enumerate(zip(outputs, shapes, dtypes)):
        if (tuple(y.shape), y.dtype.name) != (shape, dtype):
            promise = f"its infer promised {dtype} of shape {shape}."
            if not op.infers:
                promise = (
                    f"a network takes it to be like the first input, {dtype} of shape {shape}. Give the operator an "
                    f"infer(shapes, dtypes)."
                )
            raise OperatorError(
                f"{op.name}.forward returned {y.dtype.name} of shape {tuple(y.shape)} as output {index}; {promise}"
            )
