"""Operators in C++ or CUDA: a compiled library, called with NumPy arrays here, and by adapters with their tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor, numpy_dtype
from deep500.operators.custom._attributes import checked_attributes
from deep500.operators.custom._checks import AttributeValue, Shape, is_float_name
from deep500.operators.custom._descriptors import DescribedTypes
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.native.library import NativeLibrary, Signature
from deep500.operators.operator import OptionalArray

__all__ = ["Infer", "NativeOp"]

Infer = Callable[[Sequence[Any], Sequence[Any]], tuple[Any, Any]]


class NativeOp(CustomOp):
    """An operator that was compiled from C++ or CUDA.

    It runs on NumPy arrays; adapters give the addresses of its functions (``op.library.symbol("forward")``) to code of
    their own, which calls them with the framework's tensors.
    """

    def __init__(
        self,
        library: NativeLibrary,
        attributes: Mapping[str, Any] | None = None,
        *,
        infer: Infer | None = None,
        input_tensors: Sequence[TensorDescriptor] | None = None,
        output_tensors: Sequence[TensorDescriptor] | None = None,
    ) -> None:
        """Take a library and the values of its attributes.

        Args:
            library: The compiled operator.
            attributes: Values of its attributes; those with a default may be left out.
            infer: What the outputs are like; see :meth:`CustomOp.infer`. By default every output has the shape of the
                first input, and the dtype that the library's signature says.
            input_tensors: Descriptors that the inputs must fit; a symbolic size stands for any size.
            output_tensors: Descriptors of the outputs, which may use the symbolic sizes of the inputs; instead of
                infer.

        Raises:
            OperatorError: The attributes or descriptors are not those of the library's operator.
        """
        self._library = library
        self._given = dict(attributes or {})
        self._infer = infer
        self._types: DescribedTypes | None = None
        if input_tensors is not None or output_tensors is not None:
            said = library.description
            self._types = DescribedTypes(library.name, input_tensors, output_tensors, (said.inputs, said.outputs))
        _ = self.attributes  # refuses wrong ones here, not at the first call

    @property
    def library(self) -> NativeLibrary:
        """The compiled operator."""
        return self._library

    @property
    def input_descriptors(self) -> Sequence[TensorDescriptor] | None:
        """What the inputs are compared with; ``None`` where the operator takes all that its library takes."""
        return None if self._types is None else self._types.inputs

    @cached_property
    def name(self) -> str:  # type: ignore[override]
        """Name of the library's operator."""
        return self.library.name

    @cached_property
    def input_count(self) -> int:  # type: ignore[override]
        """Number of inputs, absent ones counted."""
        return self.library.description.inputs

    @cached_property
    def output_count(self) -> int:  # type: ignore[override]
        """Number of outputs."""
        return self.library.description.outputs

    @cached_property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether the library has a backward."""
        return self.library.description.differentiable

    @cached_property
    def gradient_needs(self) -> tuple[bool, bool]:  # type: ignore[override]
        """Whether the backward reads the forward's inputs, and whether it reads its outputs."""
        said = self.library.description
        return said.gradient_needs_inputs, said.gradient_needs_outputs

    @cached_property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Values of all attributes, defaults included."""
        said = self.library.description
        return checked_attributes(said.name, said.attributes, {**said.defaults, **self._given})

    def with_attributes(self, **values: Any) -> NativeOp:
        """Return the operator with other values of some attributes.

        Raises:
            OperatorError: There is no such attribute, or the value is of another kind.
        """
        other = copy.copy(self)
        other.__dict__.pop("attributes", None)
        other._given = {**self._given, **values}
        _ = other.attributes
        return other

    @property
    def infers(self) -> bool:
        """Always: the library says at least the dtypes of the outputs."""
        return True

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the outputs; see :meth:`CustomOp.infer`."""
        if self._infer is not None:
            return self._infer(shapes, dtypes)
        if self._types is not None:
            return self._types.infer(shapes, dtypes)
        first = next((shape for shape in shapes if shape is not None), None)
        if first is None:
            return super().infer(shapes, dtypes)
        return [first] * self.output_count, self.signature(dtypes).outputs

    def infer_outputs(
        self, shapes: Sequence[Shape | None], dtypes: Sequence[str | None]
    ) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
        """Return what the outputs are like, after checking the dtypes; see :meth:`CustomOp.infer_outputs`."""
        self.check_input_count(len(shapes))
        signature = self.signature(dtypes)
        found_shapes, found_dtypes = super().infer_outputs(shapes, dtypes)
        if found_dtypes != signature.outputs:
            raise OperatorError(
                f"{self.name}.infer returned the dtypes {', '.join(found_dtypes)}; for these inputs the C++ code "
                f"writes {', '.join(signature.outputs)}."
            )
        return found_shapes, found_dtypes

    def signature(self, dtypes: Sequence[str | None]) -> Signature:
        """Return the dtypes of the variant for inputs of these dtypes, ``None`` where absent.

        Raises:
            OperatorError: There is none.
        """
        said = self.library.description
        for index, dtype in enumerate(dtypes):
            if dtype is None and index not in said.optional_inputs:
                raise OperatorError(f"{said.name}: input {index} is absent; it has to be given.")
        for signature in said.signatures:
            pairs = zip(dtypes, signature.inputs)
            if len(dtypes) == len(signature.inputs) and all(given in (None, known) for given, known in pairs):
                return signature
        accepted = " or ".join(f"({', '.join(signature.inputs)})" for signature in said.signatures)
        raise OperatorError(
            f"{said.name} was given inputs of the dtypes ({', '.join(map(str, dtypes))}); accepted are {accepted}."
        )

    def __call__(self, *inputs: Any) -> Any:
        """Run the operator on arrays; return the array when there is one output, else the tuple."""
        return self.numpy_forward(*inputs)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Run the operator on NumPy arrays."""
        outputs = self.numpy_forward(*inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[Any, ...]:
        """Compute the gradients by all inputs that are floats, on NumPy arrays."""
        outputs = [*fwd_outputs, *[None] * (self.output_count - len(fwd_outputs))]
        known = [*grads, *[None] * (self.output_count - len(grads))]
        if not self.gradient_needs[1]:  # without the outputs, C++ would not know the shape of a gradient to fill in
            known = [
                np.zeros_like(y) if g is None and y is not None and is_float_name(y.dtype.name) else g
                for g, y in zip(known, outputs)
            ]
        gradients: tuple[Any, ...] = self.numpy_backward(*known, *fwd_inputs, *outputs)
        return gradients

    @cached_property
    def numpy_forward(self) -> Callable[..., Any]:
        """The forward as a fast function of NumPy arrays, one for each input, ``None`` for those that are absent.

        Returns the output, or a tuple of several.
        """
        self._check_on_cpu()
        return self._caller("forward", self.input_count, self._resolve_forward)

    @cached_property
    def numpy_backward(self) -> Callable[..., Any]:
        """The backward as a fast function of NumPy arrays: gradients by the outputs, the inputs, the outputs.

        ``None`` stands for what is absent or not known. Returns a tuple, with a gradient for every input, ``None`` for
        those that are absent or no floats.
        """
        self._check_on_cpu()
        self.check_differentiable()
        return self._caller("backward", self.input_count + 2 * self.output_count, self._resolve_backward, True)

    def report(self, data: int = 0) -> int:
        """Return what the C++ class reports; see :meth:`NativeLibrary.report`."""
        return self.library.report(data)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle needs; functions of this process are made again."""
        return {key: value for key, value in vars(self).items() if not key.startswith("numpy_")}

    def _caller(self, which: Any, count: int, resolve: Any, always_tuple: bool = False) -> Callable[..., Any]:
        from deep500.operators.native.binding import make_caller

        kinds, address = self.library.description.attributes, self.library.symbol(which)
        return make_caller(address, self.name, count, self.attributes, kinds, resolve, always_tuple=always_tuple)

    def _check_on_cpu(self) -> None:
        if "cpu" not in self.library.description.devices:
            raise OperatorError(f"{self.name} has no code for the CPU; give it a forward beside forward_cuda.")

    def _resolve_forward(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> Any:
        found_shapes, names = self.infer_outputs(shapes, [None if d is None else d.name for d in dtypes])
        return [(shape, numpy_dtype(name)) for shape, name in zip(found_shapes, names)]

    def _resolve_backward(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> Any:
        out, names = self.output_count, [None if d is None else d.name for d in dtypes]
        inputs = slice(out, out + self.input_count)
        signature = self.signature(names[inputs])
        for given, promised in zip([*names[:out], *names[inputs.stop :]], signature.outputs * 2):
            if given not in (None, promised):
                raise OperatorError(
                    f"{self.name}: a gradient by an output, or an output, is of {given}; for these inputs it is "
                    f"{promised}."
                )
        return [
            (shape, dtype) if dtype is not None and is_float_name(dtype.name) else None
            for shape, dtype in zip(shapes[inputs], dtypes[inputs])
        ]
