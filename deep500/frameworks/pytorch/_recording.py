"""Recording calls that fx proxies do not intercept by themselves."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import fx

from deep500.frameworks.pytorch._sizes import Integers

__all__ = [
    "ProgramTracer",
    "call_each_run",
    "call_module",
    "choose",
    "recorded",
    "recorded_view",
    "returns_view",
    "spread",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


#: The tracer whose graph a lowering is being recorded in.
_CURRENT: contextvars.ContextVar[ProgramTracer] = contextvars.ContextVar("deep500_tracer")


class ProgramTracer(fx.proxy.GraphAppendingTracer):
    """Records calls in a graph, and keeps the modules that it calls.

    Attributes:
        modules: The modules by the name under which the graph calls them.
        tensors: Tensors that were computed while the graph was recorded, by the name under which it reads them.
        integers: What is known of tensors of integers, such as shapes, by the node that computes them.
        values: The tensors of ``tensors``, by the node that reads them.
    """

    def __init__(self, graph: fx.Graph) -> None:
        """Record in a graph."""
        super().__init__(graph)
        self.modules: dict[str, torch.nn.Module] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.integers: dict[fx.Node, Integers] = {}
        self.values: dict[fx.Node, torch.Tensor] = {}

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Let :func:`call_each_run` record here."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def call(self, module: torch.nn.Module, arguments: Sequence[Any]) -> fx.Proxy:
        """Record the call of a module."""
        name = f"held_{len(self.modules)}"
        self.modules[name] = module
        return self.create_proxy("call_module", name, tuple(arguments), {})

    def hold(self, tensor: torch.Tensor) -> fx.Proxy:
        """Return a proxy for a tensor whose value is known already."""
        name = f"known_{len(self.tensors)}"
        self.tensors[name] = tensor
        proxy = self.create_proxy("get_attr", name, (), {})
        self.values[proxy.node] = tensor
        return proxy


def choose(index: Any, *values: Any) -> Any:
    """Return ``values[index]``, chosen when the graph runs if the index is only known then.

    Args:
        index: A number, or a proxy for one.
        *values: Tensors or proxies.
    """
    if not isinstance(index, fx.Proxy):
        return values[index]
    return index.tracer.create_proxy("call_function", operator.getitem, (values, index), {})


def recorded(function: _Function) -> _Function:
    """Make a function of tensors one that a graph calls as a whole, for what proxies cannot do: look at values.

    Called with a proxy among its arguments, or in a list among them, it is recorded; else it runs. The graph calls the
    function itself, which need not look for proxies.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        proxy = _first_proxy((arguments, tuple(keywords.values())))
        if proxy is None:
            return function(*arguments, **keywords)
        return proxy.tracer.create_proxy("call_function", function, arguments, keywords)

    return call  # type: ignore[return-value]


def recorded_view(function: _Function) -> _Function:
    """Make a function one that a graph calls as a whole, and whose result may share memory with what it is given."""
    function.returns_view = True  # type: ignore[attr-defined]
    return recorded(function)  # functools.wraps hands the attribute on


def returns_view(target: Any) -> bool:
    """Whether what a graph calls was made by :func:`recorded_view`."""
    return bool(getattr(target, "returns_view", False))


def call_module(module: torch.nn.Module, arguments: Sequence[Any]) -> Any:
    """Call a module; in a graph that is being recorded, when it runs."""
    proxy = _first_proxy(arguments)
    return module(*arguments) if proxy is None else proxy.tracer.call(module, arguments)


def call_each_run(module: torch.nn.Module, arguments: Sequence[Any] = ()) -> Any:
    """Record the call of a module even where none of its arguments is a proxy: what it returns differs by run."""
    tracer = _CURRENT.get(None)
    return module(*arguments) if tracer is None else tracer.call(module, arguments)


def spread(values: Any, count: int) -> tuple[Any, ...]:
    """Return the entries of a tuple, or of a proxy for one, whose number is known."""
    return tuple(values[index] for index in range(count))


def _first_proxy(values: Any) -> Any:
    """Return a proxy among values and in lists of them, ``None`` where there is none."""
    if isinstance(values, fx.Proxy):
        return values
    if isinstance(values, (list, tuple)):
        return next((p for p in map(_first_proxy, values) if p is not None), None)
    return None
