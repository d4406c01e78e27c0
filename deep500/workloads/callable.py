"""Any Python callable."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import sys
from builtins import callable as is_callable
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deep500.core.errors import Deep500Error, MeasurementError, near_miss
from deep500.core.texts import message_of
from deep500.measure.workload import Scalar, Workload, WorkloadSpec
from deep500.recipe.describe import describe
from deep500.workloads._frameworks import setting_factors
from deep500.workloads._importing import find_object, importable_folder
from deep500.workloads._options import Options, refuse_place

__all__ = ["callable"]


def callable(spec: WorkloadSpec) -> Workload:
    """A Python function, called once a run, or a class derived from deep500.measure.workload.Workload.

    The text is ``package.module:function[,argument=value]...``, or the same after ``callable:``. What is called is the
    function itself: without arguments nothing is added to its time. Modules in the working folder are found, as with
    ``python -m``. The same argument objects are passed in each run. Of a :class:`Workload` class the arguments are
    those of its construction, and it says itself what it is.

    Options: the arguments, and for a function ``as``: a name for the problem that it solves, so that another
    implementation of it, under the same name and with the same arguments, is known to do the same work.

    Raises:
        MeasurementError: There is no such function, or it cannot be called with these arguments.
    """
    refuse_place(spec)
    options = Options(spec)
    problem = options.text("as", None)
    arguments = options.rest(spec.options)
    with importable_folder():
        found = find_object(spec.name)
        if isinstance(found, type) and issubclass(found, Workload):
            if problem is not None:
                raise MeasurementError(
                    f"{spec.name} is a Workload class, which names its problem itself, in its identity; 'as' is for "
                    "functions."
                )
            return _make(spec.name, found, arguments)
    _check_function(spec.name, found)
    _check_arguments(spec.name, found, arguments)
    return _Calls(spec.name, found, arguments, problem)


class _Calls(Workload):
    """Calls of one function; see :func:`callable`."""

    def __init__(
        self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any], problem: str | None
    ) -> None:
        self._name = name
        self._function = function
        self._problem = problem or name
        self._arguments = describe(arguments)
        self._source_hash = _source_hash(function)
        # The function itself in the place of the method: a call less in each run.
        self.__dict__["run"] = functools.partial(function, **arguments) if arguments else function

    def run(self) -> Any:
        """Call the function."""
        return self.__dict__["run"]()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The problem and the arguments.

        Nobody but the user knows whether two functions do the same work: a comparison of two is allowed.
        """
        return {"problem": self._problem, "options": self._arguments, "alternatives_allowed": True}

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """The function, the SHA-256 of its source file, the distribution that it came with, and settings."""
        module = self._name.partition(":")[0]
        factors = {"implementation": self._name, "source_sha256": self._source_hash}
        distributions = _distributions().get(module.partition(".")[0], [])
        versions = [f"{name} {importlib.metadata.version(name)}" for name in sorted(set(distributions))]
        return {**factors, "distribution": ", ".join(versions) or None, **setting_factors()}


def _make(name: str, kind: type[Workload], arguments: Mapping[str, Any]) -> Workload:
    """Construct a user's own workload."""
    if inspect.isabstract(kind):
        lacking = ", ".join(sorted(kind.__abstractmethods__))
        raise MeasurementError(f"The Workload class {name} does not implement {lacking}.")
    _check_arguments(name, kind, arguments)
    try:
        return kind(**arguments)
    except Deep500Error:
        raise
    except Exception as error:
        raise MeasurementError(f"{name} cannot be constructed: {type(error).__name__}: {message_of(error)}") from error


def _check_function(name: str, found: Any) -> None:
    """Check that calling an object does its work."""
    if isinstance(found, Workload):
        raise MeasurementError(f"{name} is a Workload object; name its class, so that each process makes its own.")
    if not is_callable(found):
        raise MeasurementError(
            f"{name} is a {type(found).__name__}, which cannot be called; accepted are functions, other callables and "
            "Workload classes."
        )
    for function in (found, inspect.getattr_static(type(found), "__call__", None)):
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise MeasurementError(
                f"{name} is asynchronous: calling it only makes a coroutine. Name a function that runs it, such as "
                "def run(): asyncio.run(main())."
            )
        if inspect.isgeneratorfunction(function):
            raise MeasurementError(
                f"{name} is a generator function: calling it does nothing yet. Name a function that goes through it, "
                "such as def run(): list(generate())."
            )


def _check_arguments(name: str, function: Any, arguments: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a built-in function that does not tell; its first run will
        return
    try:
        signature.bind(**arguments)
    except TypeError as error:
        named = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        unknown = next((argument for argument in arguments if argument not in named), "")
        hint = near_miss(unknown, named)
        if "self" in named[:1]:
            hint = " It is a method, which needs an object; name a function, or a static or class method."
        raise MeasurementError(
            f"{name} cannot be called so: {error}.{hint} Arguments are given as {name},argument=value; it takes by "
            f"name: {', '.join(named) or 'none'}."
        ) from error


def _innermost(function: Any) -> Any:
    """Return the function within partial ones and decorators."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function


def _source_hash(function: Any) -> str | None:
    """Return the SHA-256 of the file that a function is in; ``None`` when there is none."""
    unwrapped = _innermost(function)
    try:
        file = inspect.getsourcefile(unwrapped)
    except TypeError:  # built in, or an object that is none of Python's own functions and classes
        module = sys.modules.get(str(getattr(unwrapped, "__module__", None) or type(unwrapped).__module__))
        file = getattr(module, "__file__", None)
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
    except OSError:
        return None


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()
