"""Problems of single operators, described by their sizes: what a benchmark computes, whichever framework computes it.

A framework's adapter says by a function ``problem_function(problem, arrays, device)`` how it computes one, with its own
function on its own tensors (:class:`NativeProblem`).
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown

__all__ = [
    "AllReduceProblem",
    "ConvolutionProblem",
    "GemmProblem",
    "NativeProblem",
    "Problem",
    "RecurrentProblem",
]


@dataclass(frozen=True)
class NativeProblem:
    """A problem in a framework's own terms.

    Attributes:
        function: The framework's own function; it takes :attr:`inputs` and returns one tensor.
        inputs: Its tensors, in the framework's layout, on the device.
        to_numpy: From the tensor that it returns to an array in the problem's layout.
        synchronize: Waits until the device has finished; ``None`` where the function returns when it is done.
    """

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    to_numpy: Callable[[Any], NDArray[Any]]
    synchronize: Callable[[], None] | None = None


class Problem(abc.ABC):
    """A problem of one operator: a frozen dataclass whose fields are its sizes.

    Attributes:
        is_distributed: Whether it takes several processes that exchange data.
    """

    is_distributed: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """The sizes in a few characters."""

    @abc.abstractmethod
    def inputs(self, dtype: str) -> dict[str, TensorDescriptor]:
        """Return the inputs by name."""

    @abc.abstractmethod
    def output(self, dtype: str) -> TensorDescriptor:
        """Return the output."""

    @property
    @abc.abstractmethod
    def flops(self) -> int:
        """Floating-point operations, of which a multiplication with addition is two; those in the padding count."""

    def fan_in(self, name: str) -> int:
        """Return over how many products the values of an input are to be scaled down, so that results keep their size.

        1 leaves the values as they are drawn, which sums of products without a feedback can bear.
        """
        return 1

    @property
    def sizes(self) -> dict[str, int | str | bool]:
        """The sizes by name."""
        return dict(vars(self))

    def size_bytes(self, dtype: str) -> int:
        """Return the bytes of all inputs and of the output."""
        return sum(kind.size_bytes or 0 for kind in (*self.inputs(dtype).values(), self.output(dtype)))


@dataclass(frozen=True)
class GemmProblem(Problem):
    r"""A product of two matrices, :math:`Y = A' B'`.

    :math:`A'`, ``[m, k]``, is A ``[m, k]``, or the transpose of A ``[k, m]``; :math:`B'`, ``[k, n]``, likewise. All are
    stored row by row, as the frameworks do; DeepBench stores column by column, and adds to what the output held.

    Attributes:
        m: Rows of the output.
        n: Columns of the output.
        k: Length of the sums.
        a_transposed: Whether A is stored as ``[k, m]``.
        b_transposed: Whether B is stored as ``[n, k]``.
    """

    m: int
    n: int
    k: int
    a_transposed: bool = False
    b_transposed: bool = False

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_sizes(self, ("m", "n", "k"))
        for name in ("a_transposed", "b_transposed"):
            value = getattr(self, name)
            if value not in (0, 1):
                raise InvalidInputError(f"{name} was given as {shown(value)}; accepted are True and False.")
            object.__setattr__(self, name, bool(value))

    @property
    def title(self) -> str:
        """``m x n x k``, and which matrices are transposed."""
        transposed = {(True, False): " A'", (False, True): " B'", (True, True): " A' B'"}
        return f"{self.m}x{self.n}x{self.k}{transposed.get((self.a_transposed, self.b_transposed), '')}"

    def inputs(self, dtype: str) -> dict[str, TensorDescriptor]:
        """Return A and B as they are stored."""
        a, b = (self.m, self.k), (self.k, self.n)
        return {
            "A": TensorDescriptor(dtype, a[::-1] if self.a_transposed else a),
            "B": TensorDescriptor(dtype, b[::-1] if self.b_transposed else b),
        }

    def output(self, dtype: str) -> TensorDescriptor:
        """Return Y, ``[m, n]``."""
        return TensorDescriptor(dtype, (self.m, self.n))

    @property
    def flops(self) -> int:
        """Two for each product."""
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class ConvolutionProblem(Problem):
    """A two-dimensional convolution (cross-correlation) with zeros around the image, without a bias.

    X is ``[N, C, height, width]``, W ``[filters, C, filter_height, filter_width]``, and the output
    ``[N, filters, output height, output width]``. A framework may keep them in another order of dimensions.

    Attributes:
        width: Width of the images.
        height: Their height.
        channels: Their channels.
        batch_size: Number of images.
        filters: Channels of the output.
        filter_width: Width of the filters.
        filter_height: Their height.
        pad_width: Columns of zeros on either side of an image.
        pad_height: Rows of zeros above and below it.
        stride_width: Columns from one window to the next.
        stride_height: Rows from one window to the next.
    """

    width: int
    height: int
    channels: int
    batch_size: int
    filters: int
    filter_width: int
    filter_height: int
    pad_width: int = 0
    pad_height: int = 0
    stride_width: int = 1
    stride_height: int = 1

    def __post_init__(self) -> None:
        """Check the sizes."""
        pads = ("pad_width", "pad_height")
        _check_sizes(self, [field.name for field in dataclasses.fields(self) if field.name not in pads])
        _check_sizes(self, pads, least=0)
        if min(self.output_size) < 1:
            raise InvalidInputError(
                f"A filter of {self.filter_height}x{self.filter_width} does not fit into images of "
                f"{self.height}x{self.width} with {self.pad_height} and {self.pad_width} zeros on each side."
            )

    @property
    def output_size(self) -> tuple[int, int]:
        """Height and width of the output."""
        return (
            (self.height + 2 * self.pad_height - self.filter_height) // self.stride_height + 1,
            (self.width + 2 * self.pad_width - self.filter_width) // self.stride_width + 1,
        )

    @property
    def title(self) -> str:
        """Images, filters, and stride and padding where there are any."""
        image = f"{self.batch_size}x{self.channels}x{self.height}x{self.width}"
        strides, pads = (self.stride_height, self.stride_width), (self.pad_height, self.pad_width)
        stride = "" if strides == (1, 1) else f" /{_pair(strides)}"
        pad = "" if pads == (0, 0) else f" +{_pair(pads)}"
        return f"{image} * {self.filters}x{self.filter_height}x{self.filter_width}{stride}{pad}"

    def inputs(self, dtype: str) -> dict[str, TensorDescriptor]:
        """Return X and W."""
        return {
            "X": TensorDescriptor(dtype, (self.batch_size, self.channels, self.height, self.width)),
            "W": TensorDescriptor(dtype, (self.filters, self.channels, self.filter_height, self.filter_width)),
        }

    def output(self, dtype: str) -> TensorDescriptor:
        """Return Y."""
        return TensorDescriptor(dtype, (self.batch_size, self.filters, *self.output_size))

    @property
    def flops(self) -> int:
        """Two for each product."""
        height, width = self.output_size
        products = self.channels * self.filter_height * self.filter_width
        return 2 * self.batch_size * self.filters * height * width * products


@dataclass(frozen=True)
class RecurrentProblem(Problem):
    r"""One recurrent layer over a whole sequence, from zeros; as many features come in as there are hidden units.

    X is ``[time_steps, N, H]``, the output, all hidden states, likewise. With the gates one below the other, the
    weights W (of the input) and R (of the state) are ``[G H, H]``, and their biases B ``[2, G H]``:

    - ``vanilla``: :math:`h' = \mathrm{relu}(W x + R h + b)`.
    - ``lstm``, gates in the order input, forget, cell, output: :math:`c' = f c + i \tanh(g)`,
      :math:`h' = o \tanh(c')`.
    - ``gru``, gates in the order reset, update, new: :math:`n = \tanh(W_n x + b_n + r (R_n h + b'_n))`,
      :math:`h' = (1 - z) n + z h`.

    DeepBench leaves the product with the input out, which the layers of the frameworks do not offer: it is part of the
    work here. Its text asks for a rectifier in the GRU, its code uses the hyperbolic tangent, as is done here.

    Attributes:
        hidden_size: Number of hidden units, H.
        batch_size: Number of sequences, N.
        time_steps: Length of the sequences.
        cell: ``"vanilla"``, ``"lstm"`` or ``"gru"``.
    """

    hidden_size: int
    batch_size: int
    time_steps: int
    cell: str

    #: Gates of each kind of cell.
    GATES: ClassVar[Mapping[str, int]] = {"vanilla": 1, "lstm": 4, "gru": 3}

    def __post_init__(self) -> None:
        """Check the sizes and the cell."""
        _check_sizes(self, ("hidden_size", "batch_size", "time_steps"))
        if self.cell not in self.GATES:
            raise InvalidInputError(f"cell was given as {shown(self.cell)}; accepted are {', '.join(self.GATES)}.")

    @property
    def title(self) -> str:
        """Cell, and sizes of states and sequence."""
        return f"{self.cell} {self.time_steps}x{self.batch_size}x{self.hidden_size}"

    def inputs(self, dtype: str) -> dict[str, TensorDescriptor]:
        """Return X, W, R and B."""
        hidden, rows = self.hidden_size, self.GATES[self.cell] * self.hidden_size
        return {
            "X": TensorDescriptor(dtype, (self.time_steps, self.batch_size, hidden)),
            "W": TensorDescriptor(dtype, (rows, hidden)),
            "R": TensorDescriptor(dtype, (rows, hidden)),
            "B": TensorDescriptor(dtype, (2, rows)),
        }

    def output(self, dtype: str) -> TensorDescriptor:
        """Return the hidden states after each step."""
        return TensorDescriptor(dtype, (self.time_steps, self.batch_size, self.hidden_size))

    def fan_in(self, name: str) -> int:
        """Return H for weights and biases: with larger ones, states grow from step to step beyond all numbers."""
        return 1 if name == "X" else self.hidden_size

    @property
    def flops(self) -> int:
        """Two for each product of both weight matrices; the gates' own functions are not counted."""
        return 4 * self.GATES[self.cell] * self.hidden_size**2 * self.batch_size * self.time_steps


@dataclass(frozen=True)
class AllReduceProblem(Problem):
    """The sum of one vector of each process, which all of them get.

    Attributes:
        elements: Length of the vector.
    """

    is_distributed: ClassVar[bool] = True

    elements: int

    def __post_init__(self) -> None:
        """Check the length."""
        _check_sizes(self, ("elements",))

    @property
    def title(self) -> str:
        """The length."""
        return f"{self.elements}"

    def inputs(self, dtype: str) -> dict[str, TensorDescriptor]:
        """Return the vector of one process."""
        return {"X": TensorDescriptor(dtype, (self.elements,))}

    def output(self, dtype: str) -> TensorDescriptor:
        """Return the sum."""
        return TensorDescriptor(dtype, (self.elements,))

    @property
    def flops(self) -> int:
        """One for each element, and for each process that adds its vector."""
        return self.elements


def _check_sizes(problem: Problem, names: Any, *, least: int = 1) -> None:
    for name in names:
        check_count(name, getattr(problem, name), least=least)


def _pair(sizes: tuple[int, int]) -> str:
    return str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}x{sizes[1]}"
