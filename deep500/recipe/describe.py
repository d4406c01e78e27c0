"""Describing any Python value as JSON: the same text in every process for the same configuration.

Nothing in a description depends on where an object lies in memory or on the order of a set. Classes and functions are
named by their module and qualified name. What a recipe file itself defines (a lambda for weight decay, an optimizer of
its own) has no name that others could look up; it is described by its source as well, so that a changed line is a
changed configuration.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import hashlib
import json
import linecache
import math
import os
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deep500.networks.network import Network

__all__ = ["RECIPE_MODULE_PREFIX", "describe", "hash_description"]

#: What the names of modules start with that were made from a recipe file given by its path.
RECIPE_MODULE_PREFIX = "deep500_recipe_file_"

_PLAIN = (type(None), bool, int, str)

#: Longest whole number that is written in decimal digits; Python refuses to write more than 4,300 of them.
_LONGEST_INTEGER_BITS = 4096


def hash_description(description: Any) -> str:
    """Return the SHA-256 of a description's canonical JSON text, as a hexadecimal text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def describe(value: Any) -> Any:
    """Return a description of a value that ``json.dumps`` takes.

    Plain values, lists and dictionaries with text keys stay as they are (a tuple becomes a list); everything else
    becomes a dictionary whose first key starts with ``$`` and says what it is.

    Example:
        >>> describe({"rate": 0.1, "sizes": (3, 4), "kind": complex})
        {'rate': 0.1, 'sizes': [3, 4], 'kind': {'$class': 'builtins:complex'}}
    """
    return _describe(value, ())


def _describe(value: Any, parents: tuple[int, ...]) -> Any:
    if isinstance(value, enum.Enum):
        return {"$enum": f"{_type_name(type(value))}.{value.name}"}
    if type(value) is int and value.bit_length() > _LONGEST_INTEGER_BITS:
        return {"$int": hex(value)}
    if type(value) in _PLAIN:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if id(value) in parents:
        return {"$cycle": len(parents) - parents.index(id(value))}
    inner = (*parents, id(value))
    if isinstance(value, type):
        return _with_source({"$class": _type_name(value)}, value.__module__, value.__qualname__, _class_source(value))
    if isinstance(value, types.ModuleType):
        return {"$module": value.__name__}
    if isinstance(value, types.MethodType):
        return {"$method": value.__func__.__qualname__, "self": _describe(value.__self__, inner)}
    if isinstance(value, types.FunctionType):
        return _describe_function(value, inner)
    if isinstance(value, types.BuiltinFunctionType):
        return {"$function": f"{value.__module__}:{value.__qualname__}"}
    if isinstance(value, functools.partial):
        parts = {"args": value.args, "kwargs": value.keywords}
        return {"$partial": _describe(value.func, inner), **{k: _describe(v, inner) for k, v in parts.items()}}
    return _describe_data(value, inner)


def _describe_data(value: Any, inner: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        return _describe_mapping(value, inner)
    if type(value) in (list, tuple):
        return [_describe(item, inner) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"$set": sorted((_describe(item, inner) for item in value), key=hash_description)}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": hashlib.sha256(value).hexdigest(), "size_bytes": len(value)}
    if isinstance(value, os.PathLike):
        return {"$path": os.fspath(value)}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return _describe(value.item(), inner)
    if isinstance(value, Network):
        file = value.to_proto().SerializeToString(deterministic=True)
        return {"$network": value.name, "sha256": hashlib.sha256(file).hexdigest()}
    if hasattr(type(value), "__array__"):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {"$array": array.dtype.name, "shape": list(array.shape), "sha256": digest}
    return _describe_object(value, inner)


def _describe_mapping(value: Mapping[Any, Any], inner: tuple[int, ...]) -> Any:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: _describe(item, inner) for key, item in value.items()}
    pairs = [[_describe(key, inner), _describe(item, inner)] for key, item in value.items()]
    return {"$mapping": sorted(pairs, key=hash_description)}


def _describe_object(value: Any, inner: tuple[int, ...]) -> dict[str, Any]:
    """Describe an object by its class and attributes, or by how it would be pickled when it shows no attributes."""
    kind = type(value)
    described = _with_source({"$object": _type_name(kind)}, kind.__module__, kind.__qualname__, _class_source(kind))
    names = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    slots = [name for base in kind.__mro__ for name in _slots(base)]
    names += [name for name in (*getattr(value, "__dict__", ()), *slots) if name not in names]
    attributes = {name: getattr(value, name) for name in names if hasattr(value, name)}
    if attributes or hasattr(value, "__dict__"):
        return {**described, "attributes": _describe_mapping(attributes, inner)}
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        # An object that cannot be pickled (a lock, a file) has no value of its own to tell.
        return described
    state = reduced[1:3] if isinstance(reduced, tuple) else (reduced,)
    return {**described, "state": [_describe(part, inner) for part in state]}


def _describe_function(function: types.FunctionType, inner: tuple[int, ...]) -> dict[str, Any]:
    name = f"{_module_label(function.__module__)}:{function.__qualname__}"
    described: dict[str, Any] = {"$function": name}
    if not _is_nameless(function.__module__, function.__qualname__):
        return described
    described["source"] = _function_source(function)
    code = function.__code__
    cells = function.__closure__ or ()
    reads: dict[str, Any] = {
        "defaults": [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())],
        "closure": {n: c.cell_contents for n, c in zip(code.co_freevars, cells, strict=True) if _filled(c)},
        # Constants of the recipe file that the function reads; modules and other functions have names of their own.
        "globals": {
            n: function.__globals__[n]
            for n in sorted(set(code.co_names))
            if isinstance(function.__globals__.get(n), (int, float, str, tuple))
        },
    }
    return {**described, **{key: _describe(part, inner) for key, part in reads.items() if part}}


def _with_source(described: dict[str, Any], module: str, qualified_name: str, source: str | None) -> dict[str, Any]:
    if source is not None and _is_nameless(module, qualified_name):
        described["source"] = source
    return described


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the enclosing function has not assigned the variable yet
        return False


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _is_nameless(module: str, qualified_name: str) -> bool:
    """Whether a name does not lead to the object in another process: it is local, or in a file run as a script."""
    return "<" in qualified_name or module == "__main__" or module.startswith(RECIPE_MODULE_PREFIX)


def _type_name(kind: type) -> str:
    return f"{_module_label(kind.__module__)}:{kind.__qualname__}"


def _module_label(module: str) -> str:
    """Return a module's name; for a recipe file its own name, whether it is run as a script or by the runner."""
    if module.startswith(RECIPE_MODULE_PREFIX):
        return module.removeprefix(RECIPE_MODULE_PREFIX)
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).stem if module == "__main__" and file else module


def _parsed(file: str) -> ast.Module | None:
    lines = linecache.getlines(file)
    return ast.parse("".join(lines)) if lines else None


def _function_source(function: types.FunctionType) -> str:
    """Return the function's source in a form that neither comments nor line breaks change."""
    code = function.__code__
    tree = _parsed(code.co_filename)
    found = []
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                found.append(node)
    if len(found) > 1:  # several lambdas in one line
        found = _innermost(found, code)
    if not found:  # typed into an interpreter: there is no file to read
        plain = [c for c in code.co_consts if type(c) in (*_PLAIN, float)]
        content = code.co_code + repr((code.co_names, plain)).encode()
        return f"bytecode {hashlib.sha256(content).hexdigest()}"
    return "; ".join(ast.unparse(node) for node in found)


def _innermost(nodes: list[Any], code: types.CodeType) -> list[Any]:
    """Return the smallest node that holds all instructions; all nodes where Python keeps no columns (3.10)."""
    positions = [
        (line, column)
        for line, _, column, end in (code.co_positions() if hasattr(code, "co_positions") else ())
        if line is not None and column is not None and end is not None and end > column
    ]
    if not positions:
        return nodes
    first, last = min(positions), max(positions)
    around = [n for n in nodes if (n.lineno, n.col_offset) <= first and last <= (n.end_lineno, n.end_col_offset)]
    return [max(around, key=lambda n: (n.lineno, n.col_offset))] if around else nodes


def _class_source(kind: type) -> str | None:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not file or not _is_nameless(kind.__module__, kind.__qualname__):
        return None
    tree = _parsed(file)
    name = kind.__qualname__.rpartition(".")[2]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name] if tree else []
    return "; ".join(ast.unparse(node) for node in found) or None
