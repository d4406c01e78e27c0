"""The framework-neutral network: an ONNX model with a mode, parameters and losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks._descriptions import described_tensors, described_values, hash_tensors, stored_tensors
from deep500.networks._tensor_values import stored_tensor
from deep500.networks.program import Program, build_program
from deep500.networks.tensor_roles import TensorRole, is_loss
from deep500.networks.tensor_store import InitializerStore, TensorStore
from deep500.networks.training_form import Mode

if TYPE_CHECKING:
    import onnx

    from deep500.networks.loss import Loss

__all__ = ["Network"]


class Network:
    """A neural network as ONNX describes it.

    A network by itself holds its initial weights. An executor *binds* it (``executor.network``): the bound network
    shares the graph, but its tensors are those on the executor's device, its mode is its own, and it has gradients.

    Attributes:
        model: The ONNX model (``onnx_ir``). Changing it by hand after an executor was made is not supported.
    """

    def __init__(self, model: ir.Model, store: TensorStore | None = None) -> None:
        """Wrap a model that is valid and has its shapes inferred; :meth:`load` takes any.

        Args:
            model: The model.
            store: Where the tensors live; by default in the model.
        """
        self.model = model
        self._store: TensorStore = store or InitializerStore(model.graph)
        self._mode = Mode.EVAL
        self._programs: dict[tuple[frozenset[str], Mode, int], Program] = {}

    @classmethod
    def load(
        cls, source: str | PathLike[str] | bytes | IO[bytes] | onnx.ModelProto, *, max_size_bytes: int | None = None
    ) -> Network:
        """Read a network from an ONNX file, from a file's bytes or from a model.

        The model is checked, normalised and its shapes are inferred. Values that the file keeps in other files are read
        from its own folder only.

        Args:
            source: A path, the bytes of a file, an open file, or an ``onnx.ModelProto``.
            max_size_bytes: Largest size of the file and of the values that it keeps in other files, together.

        Raises:
            InvalidNetworkError: It cannot be read or is not valid ONNX.
        """
        from deep500.networks.loading import load_model

        return cls(load_model(source, max_size_bytes=max_size_bytes))

    @classmethod
    def from_torch(
        cls, module: Any, example: Any, *, dynamic_batch: bool = True, names: Mapping[str, str] | None = None
    ) -> Network:
        """Return what a ``torch.nn.Module`` computes, exported by ``torch.export``.

        Parameters keep their names; they are trained unless they have ``requires_grad=False``.

        Args:
            module: The module; it is left as it was.
            example: A tensor or array, a tuple of them for several arguments, or a dictionary of them by argument.
            dynamic_batch: Whether the size of the first dimension may differ from the example's.
            names: New names of inputs (by default those of the arguments of ``forward``) and outputs (``output``, or
                ``output_0`` and so on).

        Raises:
            InvalidNetworkError: PyTorch cannot export the module.
            MissingDependencyError: PyTorch is not installed.
        """
        from deep500.networks.importing import import_network

        return import_network("pytorch", module, example, dynamic_batch=dynamic_batch, names=names)

    @classmethod
    def from_keras(cls, model: Any, example: Any = None, *, names: Mapping[str, str] | None = None) -> Network:
        """Return what a ``keras.Model`` computes, converted by tf2onnx.

        Weights keep their names (``weight.path``); they are trained unless Keras does not.

        Args:
            model: The model.
            example: Inputs of a model that does not declare them: a tensor or array, or a list of them.
            names: New names of inputs (by default Keras' own) and outputs (``output``, or ``output_0`` and so on).

        Raises:
            InvalidNetworkError: The model cannot be converted.
            MissingDependencyError: TensorFlow or tf2onnx is not installed.
        """
        from deep500.networks.importing import import_network

        return import_network("tensorflow", model, example, names=names)

    def save(self, path: str | PathLike[str], *, external_data: bool | None = None) -> None:
        """Write the network, with the current values of its tensors, as an ONNX file.

        The file appears whole or not at all.

        Args:
            path: Where to.
            external_data: Whether the tensors go to a file beside it; by default only those that protobuf's limit of
                2 GB keeps out of the file.

        Raises:
            InvalidNetworkError: The file cannot be written.
        """
        from deep500.networks.saving import save_model

        current = None if isinstance(self._store, InitializerStore) else self._store.fetch
        save_model(self.model, path, current, external_data=external_data)

    def to_proto(self) -> onnx.ModelProto:
        """Return the network, with the current values of its tensors, as an ``onnx.ModelProto``.

        Raises:
            InvalidNetworkError: It is too large for a message of protobuf; :meth:`save` writes such a network.
        """
        from deep500.networks.saving import check_inline

        check_inline(self.model)
        proto = ir.to_proto(self.model)
        if not isinstance(self._store, InitializerStore):
            for tensor in proto.graph.initializer:
                current = stored_tensor(self._store.fetch(tensor.name), tensor.name)
                tensor.CopyFrom(ir.to_proto(current))
        return proto

    def expanded(self, is_kept: Callable[[str, str, int], bool]) -> Network:
        """Return the network with operators replaced that ONNX defines by others; itself where there are none.

        Args:
            is_kept: Says of an operator (domain, name, version) whether it is left as it is.

        Raises:
            InvalidNetworkError: A definition cannot be inlined.
        """
        from deep500.networks.normalise.expand import expand_functions

        model = expand_functions(self.model, is_kept)
        return self if model is None else self.with_model(model)

    def folded(self) -> Network:
        """Return the network without what can be computed from constants alone; itself where there is none.

        Raises:
            InvalidNetworkError: A constant cannot be computed.
        """
        from deep500.networks.normalise.fold import fold_constants

        model = fold_constants(self.model)
        return self if model is None else self.with_model(model)

    def detached(self) -> Network:
        """Return a copy with the current values of its tensors, bound to no executor."""
        return self.with_model(self.model.clone())

    def without_losses(self) -> Network:
        """Return a copy without the losses, and without the inputs that only they read.

        Raises:
            InvalidNetworkError: A loss has parameters.
        """
        from deep500.networks.loss import remove_losses

        return self.with_model(remove_losses(self.model))

    def with_model(self, model: ir.Model) -> Network:
        """Return a network over another model, with this one's tensors, as far as the model has them, and mode."""
        network = Network(model)
        if not isinstance(self._store, InitializerStore):
            for name in self.model.graph.initializers:
                if name in model.graph.initializers:
                    network.feed_tensor(name, self._store.fetch(name))
        network._mode = self._mode
        return network

    def bind(self, store: TensorStore) -> Network:
        """Return a network over the same graph whose tensors live in ``store``."""
        bound = Network(self.model, store)
        bound._mode = self._mode
        return bound

    @property
    def name(self) -> str:
        """The graph's name."""
        return self.model.graph.name or "network"

    @property
    def inputs(self) -> dict[str, Any]:
        """Dtype and shape of every input, labels included, by name; see :mod:`deep500.core.value_descriptor`."""
        graph = self.model.graph
        return described_values(graph, (v for v in graph.inputs if v.name not in graph.initializers), known=True)

    @property
    def outputs(self) -> dict[str, Any]:
        """Dtype and shape of every output that is not a loss, by name; ``None`` where even the dtype is not known."""
        graph = self.model.graph
        return described_values(graph, (v for v in graph.outputs if not is_loss(v)), known=False)

    @property
    def losses(self) -> dict[str, TensorDescriptor]:
        """Dtype and shape of every loss, by name."""
        return described_tensors(self.model.graph, (v for v in self.model.graph.outputs if is_loss(v)))

    @property
    def parameters(self) -> dict[str, TensorDescriptor]:
        """Dtype and shape of every tensor that is trained, by name."""
        return stored_tensors(self.model.graph, TensorRole.PARAMETER)

    @property
    def states(self) -> dict[str, TensorDescriptor]:
        """Dtype and shape of every tensor that training-mode operators update, by name."""
        return stored_tensors(self.model.graph, TensorRole.STATE)

    @property
    def constants(self) -> dict[str, TensorDescriptor]:
        """Dtype and shape of every tensor that never changes, by name."""
        return stored_tensors(self.model.graph, TensorRole.CONSTANT)

    @property
    def mode(self) -> str:
        """``"train"`` or ``"eval"``."""
        return self._mode.value

    def train(self) -> Network:
        """Put operators such as BatchNormalization in training mode; return the network."""
        self._mode = Mode.TRAIN
        return self

    def eval(self) -> Network:
        """Put operators such as BatchNormalization in evaluation mode (the default); return the network."""
        self._mode = Mode.EVAL
        return self

    def as_declared(self) -> Network:
        """Let every operator train or not as its node says (``training_mode``), as other runtimes do.

        No state of the network is updated then. Return the network.
        """
        self._mode = Mode.DECLARED
        return self

    def append_loss(
        self,
        loss: str | Loss,
        *,
        prediction: str | None = None,
        label: str = "label",
        name: str = "loss",
    ) -> str:
        """Append a loss, and the input for its label, to the network.

        Args:
            loss: A loss's name (``"SoftmaxCrossEntropyLoss"``, ``"MeanSquaredError"``) or a loss.
            prediction: Name of the output to compare with the label; may be omitted when there is one output.
            label: Name of the label's input; it is added unless it exists.
            name: Name of the new output.

        Returns:
            The name of the new output.

        Raises:
            InvalidInputError: A name is taken, or the prediction is not an output.
            UnknownNameError: There is no such loss.
        """
        from deep500.networks.loss import append_loss

        append_loss(self.model, loss, prediction=prediction, label=label, name=name)
        return name

    def get_params(self) -> list[str]:
        """Return the names of the parameters, in the network's order."""
        return list(self.parameters)

    def fetch_tensors(self, names: Sequence[str]) -> list[NDArray[Any]]:
        """Return copies of tensors as NumPy arrays: parameters, states, gradients, outputs of the last run.

        Raises:
            UnknownNameError: There is no tensor of a name, or it was not computed yet.
        """
        if isinstance(names, str):
            raise InvalidInputError(f"fetch_tensors takes a list of names; received {names!r}. Use [{names!r}].")
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"fetch_tensors takes a list of names; received {names!r}.")
        return [self._store.fetch(name) for name in names]

    def feed_tensor(self, name: str, value: Any) -> None:
        """Replace the value of a parameter or state.

        Raises:
            InvalidInputError: Dtype or shape differ from the tensor's.
            UnknownNameError: There is no tensor of this name.
        """
        self._store.feed(name, value)

    def gradient(self, loss: str = "loss") -> list[tuple[str, str]]:
        """Return, for every parameter that the loss depends on, its name and the name of its gradient.

        :meth:`fetch_tensors` returns the values of both.

        Raises:
            UnknownNameError: There is no such loss, or its gradient was not computed yet.
        """
        if not isinstance(loss, str) or (loss not in self.losses and loss not in self.outputs):
            known = [*self.losses, *self.outputs]
            raise UnknownNameError(
                f"The network has no output named {loss!r}.{near_miss(loss, known)} Its outputs: {', '.join(known)}."
            )
        return list(self._store.gradient_names(loss))

    def program(self, fed: frozenset[str]) -> Program:
        """Return the part of the network that can run when the named inputs are fed, in the current mode.

        Raises:
            UnknownNameError: A name is not an input.
            InvalidInputError: An input that is needed is missing.
        """
        graph = self.model.graph
        key = (fed, self._mode, len(graph.outputs))
        if key not in self._programs:
            known = [v.name or "" for v in graph.inputs]
            for name in sorted(fed, key=str):
                if name not in known:
                    raise UnknownNameError(
                        f"The network has no input named {name!r}.{near_miss(name, known)} "
                        f"Its inputs: {', '.join(known) or 'none'}."
                    )
            self._programs[key] = build_program(graph, fed, self._mode)
        return self._programs[key]

    def weights_hash(self) -> str:
        """Return the SHA-256 over name, dtype, shape and bytes of all stored tensors, as a hexadecimal text.

        Equal hashes mean equal bits, whichever framework holds them.
        """
        return hash_tensors(self.model.graph.initializers, self._store.fetch)

    @property
    def parameter_count(self) -> int:
        """Number of trained scalars."""
        return sum(d.element_count or 0 for d in self.parameters.values())

    @property
    def parameter_size_bytes(self) -> int:
        """Size of the trained tensors in bytes."""
        return sum(d.size_bytes or 0 for d in self.parameters.values())

    def flops(self, batch_size: int = 1) -> int:
        """Return the floating-point operations of one inference; see :mod:`deep500.networks.flops`."""
        from deep500.networks.flops import network_flops

        return network_flops(self, batch_size)

    def summary(self, batch_size: int = 1, sizes: Mapping[str, int] | None = None) -> str:
        """Return a table of the nodes with shapes, parameters and FLOPs, ready to print.

        Args:
            batch_size: Number of samples for which operations are counted.
            sizes: Further symbolic sizes by name.
        """
        from deep500.networks.summary import network_summary

        return network_summary(self, batch_size, sizes)

    def picture(self, path: str | PathLike[str]) -> None:
        """Write a picture of the graph, an SVG file; see :mod:`deep500.networks.picture.drawing`.

        Raises:
            InvalidInputError: The name does not end with ``.svg``.
            FileWriteError: The file cannot be written.
        """
        from deep500.networks.picture.drawing import draw_network

        draw_network(self, path)

    def __repr__(self) -> str:
        """Return a one-line description."""
        inputs = ", ".join(f"{n}: {d}" for n, d in self.inputs.items())
        outputs = ", ".join(f"{n}: {d}" for n, d in (self.outputs | self.losses).items())
        return f"<Network {self.name!r} ({inputs}) -> ({outputs}), {self.parameter_count:,} parameters, {self.mode}>"
