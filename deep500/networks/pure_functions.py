"""Whether a function of a user may be traced once instead of called each time: what its code reads and writes.

The answer "yes" is given only where it follows from the code. What a function reads from outside (hyperparameters,
constants of a module, values around a closure) is written down, so that it is noticed when that changes.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Readings", "readings_of"]

#: Built-in functions that depend on their arguments alone and change none.
_PURE_BUILTINS = frozenset(
    {"abs", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "pow", "range"}
    | {"reversed", "round", "sorted", "str", "sum", "super", "tuple", "zip"}
)

#: Instructions that change what outlives the call.
_WRITES = ("STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "DELETE_GLOBAL")

#: Further instructions that are not followed.
_UNKNOWN = (
    "STORE_DEREF",
    "DELETE_DEREF",
    "STORE_NAME",
    "LOAD_NAME",
    "LOAD_CLASSDEREF",
    "YIELD_VALUE",
    "LOAD_BUILD_CLASS",
)

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

#: Depth of calls that is followed.
_DEEPEST = 8


@dataclass
class Readings:
    """What a function reads from outside that may change: where, and what was found.

    Attributes:
        values: Functions that read a value again, with the value.
    """

    values: list[tuple[Callable[[], Any], Any]] = field(default_factory=list)

    def hold(self) -> bool:
        """Return whether everything is still what it was."""
        return all(_read(get) is value or (type(value) in _PLAIN and _read(get) == value) for get, value in self.values)


def readings_of(
    function: Callable[..., Any], modules: Iterable[str], *, variable: Iterable[str] = (), allowed: Iterable[Any] = ()
) -> Readings | None:
    """Return what a function reads; ``None`` when its result may depend on more, or it may have effects.

    Args:
        function: A function, or a method bound to its object.
        modules: Names of modules whose functions may be called, with those inside them.
        variable: Names of attributes of the object that are arguments in truth, and may change.
        allowed: Objects whose functions may be called.
    """
    follower = _Follower(frozenset(modules), frozenset(variable), tuple(allowed))
    return follower.readings if follower.accepts(function, 0) else None


class _Follower:
    """Goes through the code of a function and of those that it calls."""

    def __init__(self, modules: frozenset[str], variable: frozenset[str], allowed: tuple[Any, ...]) -> None:
        self.modules, self.variable, self.allowed = modules, variable, allowed
        self.readings = Readings()
        self._accepted: set[tuple[int, int]] = set()

    def accepts(self, function: Any, depth: int, owner: Any = None) -> bool:
        if isinstance(function, types.MethodType):
            function, owner = function.__func__, function.__self__
        if not isinstance(function, types.FunctionType) or depth > _DEEPEST:
            return False
        key = (id(function), id(owner))
        if key in self._accepted:
            return True
        self._accepted.add(key)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        return all(_is_constant(value) for value in defaults) and self._follows(
            function.__code__, function, depth, owner
        )

    def _follows(self, code: types.CodeType, function: types.FunctionType, depth: int, owner: Any) -> bool:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        for instruction in dis.get_instructions(code):
            name, argument = instruction.opname, instruction.argval
            if name in _WRITES or name in _UNKNOWN:
                return False
            if name.startswith("IMPORT_NAME") and argument.partition(".")[0] not in self.modules:
                return False
            if name.startswith("LOAD_GLOBAL") and not self._global(function.__globals__, argument, depth):
                return False
            is_outer = argument not in function.__code__.co_cellvars  # else a local variable of the function
            if name.startswith("LOAD_DEREF") and is_outer and not self._cell(cells.get(argument), depth, owner):
                return False
            if name.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER")) and not self._attribute(
                owner, argument, depth
            ):
                return False
        inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        return all(self._follows(constant, function, depth, owner) for constant in inner)

    def _global(self, found: dict[str, Any], name: str, depth: int) -> bool:
        if name not in found:
            return name in _PURE_BUILTINS and hasattr(builtins, name)
        return self._value(lambda: found[name], depth)

    def _cell(self, cell: Any, depth: int, owner: Any) -> bool:
        if cell is None:
            return False
        try:
            content = cell.cell_contents
        except ValueError:  # not set yet
            return False
        if owner is not None and (content is owner or content is type(owner)):
            return True
        return self._value(lambda: cell.cell_contents, depth)

    def _attribute(self, owner: Any, name: str, depth: int) -> bool:
        """Take an attribute for the owner's where it has one of this name; others are those of tensors and modules."""
        if owner is None or name in self.variable or not hasattr(owner, name):
            return not name.startswith("__")
        kind = getattr(type(owner), name, None)
        if isinstance(kind, property):
            return kind.fget is not None and self.accepts(kind.fget, depth + 1, owner)
        if isinstance(kind, types.FunctionType) and name not in vars(owner):
            return self.accepts(kind, depth + 1, owner)
        return self._value(lambda: getattr(owner, name), depth)

    def _value(self, get: Callable[[], Any], depth: int) -> bool:
        value = get()
        if _is_constant(value) or any(value is entry for entry in self.allowed):
            self.readings.values.append((get, value))
            return True
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(module, str) and module.partition(".")[0] in self.modules:
            return isinstance(value, types.ModuleType) or callable(value)
        if isinstance(value, (types.FunctionType, types.MethodType)) and self.accepts(value, depth + 1):
            self.readings.values.append((get, value))
            return True
        return False


def _is_constant(value: Any) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(_is_constant(entry) for entry in value))


def _read(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except (AttributeError, KeyError, ValueError):
        return _GONE


_GONE = object()
