"""The sliding window of a convolution or pooling node, with ONNX' defaults filled in and ``auto_pad`` resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.errors import InvalidNetworkError
from deep500.networks.operator_node import OperatorNode
from deep500.operators.windows import WindowAttributes

__all__ = ["Window", "read_window"]


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions, one entry each.

    Attributes:
        kernel: Size in elements.
        strides: Step between windows.
        dilations: Step between the elements of a window.
        pads_begin: Elements added before the first.
        pads_end: Elements added after the last.
        overhang: Elements that the last window reaches beyond those, which do not count as padding; negative where
            that many elements belong to no window.
        ceil_mode: Whether a last window that is only partly inside counts. Where the sizes are known, the overhang says
            it already, and this is false.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    overhang: tuple[int, ...]
    ceil_mode: bool = False

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.kernel)

    @property
    def is_symmetric(self) -> bool:
        """Whether as much is added before as after."""
        return self.pads_begin == self.pads_end and not any(self.overhang)


def read_window(node: OperatorNode, kernel: Sequence[int] | None = None) -> Window:
    """Read the window attributes of a Conv or pooling node.

    Args:
        node: The node; its first input is ``[N, C, D1, D2, ...]``.
        kernel: Kernel size where the attribute ``kernel_shape`` may be missing (convolutions: the weight's).

    Raises:
        InvalidNetworkError: The kernel size is unknown, ``auto_pad`` needs sizes that are symbolic, or an attribute is
            not what the specification accepts.

    Source: ONNX Conv-22, MaxPool-22, AveragePool-22.
    """
    shape = node.attributes.get("kernel_shape") or kernel
    if not shape:
        raise InvalidNetworkError(f"The kernel size of {node.label} is not known; set its attribute kernel_shape.")
    rank = len(shape)
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise InvalidNetworkError(
            f"{node.label} has auto_pad={auto_pad!r}; accepted are NOTSET, VALID, SAME_UPPER and SAME_LOWER."
        )
    for name, accepted in (("strides", rank), ("dilations", rank), ("pads", 2 * rank)):
        given = node.attributes.get(name)
        if given and len(given) != accepted:
            raise InvalidNetworkError(
                f"{node.label} has {name}={list(given)}; accepted are {accepted} numbers, since its kernel has {rank} "
                f"dimensions."
            )
    ceil_mode = bool(node.attributes.get("ceil_mode", 0))
    descriptor = node.input_types[0]
    sizes = descriptor.shape[2:] if descriptor is not None and descriptor.shape is not None else ()
    known = tuple(size for size in sizes if isinstance(size, int))
    if len(known) == rank and (ceil_mode or auto_pad.startswith("SAME")):
        attributes = {name: node.attributes.get(name) for name in ("pads", "strides", "dilations")}
        plan = WindowAttributes(
            node.op_type, kernel_shape=shape, auto_pad=auto_pad, ceil_mode=int(ceil_mode), **attributes
        ).plan(known)
        reach = zip(plan.span, plan.begin, plan.size, plan.end, strict=True)
        overhang = tuple(span - begin - size - end for span, begin, size, end in reach)
        return Window(plan.kernel, plan.strides, plan.dilations, plan.begin, plan.end, overhang)
    if auto_pad.startswith("SAME"):
        raise InvalidNetworkError(
            f"{node.label} has auto_pad={auto_pad}, which needs the spatial sizes of its input; it is {descriptor}. "
            f"Declare the sizes in the network's inputs."
        )
    pads = [0] * (2 * rank) if auto_pad == "VALID" else node.attributes.get("pads") or [0] * (2 * rank)
    none = (0,) * rank
    return Window(tuple(shape), strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]), none, ceil_mode)
