from __future__ import annotations

import hashlib
import importlib.metadata
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deep500.measure.results.document import content_hash
from deep500.measure.workload import open_workload
from tests.unit.workloads.support import opened, plain, refusal

MINE = """
import asyncio
import functools
from deep500.measure.workload import Score, Work, Workload

calls = []

def add(first=1, *, second=2):
    calls.append((first, second))
    return first + second

def needs(what): return what
def anything(**arguments): return arguments

async def coroutine(): pass
async def generate_asynchronously(): yield 1
def generate(): yield 1
partial_coroutine = functools.partial(coroutine)

@functools.wraps(coroutine)
def run_coroutine(): return asyncio.run(coroutine())

class Async:
    async def __call__(self): pass
class Derived(Async): pass
asynchronous = Derived()

class Problem:
    def method(self): pass
    @staticmethod
    def static(): return 5
    @classmethod
    def of_class(cls): return 6
    def __call__(self): return 7
problem = Problem()
partial = functools.partial(add, 10)
number = 3

class Own(Workload):
    def __init__(self, size=2):
        if size == 13:
            raise ValueError("unlucky")
        self.size = size
    @property
    def identity(self): return {"problem": "own", "size": self.size}
    @property
    def work(self): return Work(self.size, "thing")
    def run(self): return self.size
    def scores(self): return [Score("size", self.size)]
own = Own()

class Lacking(Workload):
    pass

class Imports(Workload):
    def __init__(self):
        import beside
        self.value = beside.VALUE
    def run(self): return self.value
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("VALUE = 8\n")
    yield tmp_path / "mine.py"
    for name in ("mine", "beside"):
        sys.modules.pop(name, None)


# --- functions --------------------------------------------------------------------------------------------------------


def test_function_without_arguments_is_called_as_it_is() -> None:
    workload = open_workload("mine:add")

    assert workload.run is sys.modules["mine"].add
    assert type(workload).run(workload) == 3
    assert sys.modules["mine"].calls == [(1, 2)]


def test_arguments_are_passed_by_name() -> None:
    assert open_workload("callable:mine:add,first=4,second=5").run() == 9
    assert open_workload("mine:anything,a='x,y',b=[1]").run() == {"a": "x,y", "b": [1]}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("math:sqrt", None),
        ("mine:Problem.static", 5),
        ("mine:Problem.of_class", 6),
        ("mine:problem.method", None),
        ("mine:problem", 7),
        ("mine:partial", 12),
        ("mine:run_coroutine", None),
        ("time:process_time", None),
    ],
)
def test_every_kind_of_callable_is_accepted(name: str, result: object) -> None:
    if name == "math:sqrt":
        assert "cannot be called so" in refusal(name)
        return
    workload = open_workload(name)

    assert result is None or workload.run() == result
    plain(workload)


def test_class_is_constructed_in_each_run() -> None:
    assert type(open_workload("mine:Problem").run()).__name__ == "Problem"


def test_identity_is_the_name_with_the_arguments() -> None:
    identity = open_workload("mine:add,second=5").identity

    assert identity == {"problem": "mine:add", "options": {"second": 5}, "alternatives_allowed": True}
    assert open_workload("callable:mine:add,second=5").identity == identity
    assert open_workload("mine:add,second=6").identity != identity


def test_two_implementations_of_one_problem_have_one_identity() -> None:
    first, second = open_workload("mine:add,as=sum,first=3"), open_workload("mine:anything,as='sum',first=3")

    assert content_hash(dict(first.identity)) == content_hash(dict(second.identity))
    assert first.identity["problem"] == "sum"
    assert first.factors["implementation"] != second.factors["implementation"]
    assert first.run() == 5


def test_arguments_that_json_cannot_hold_are_described() -> None:
    content = plain(open_workload("mine:anything,a=1e999,b={1},c=b'x',d=2j"))

    assert content["identity"]["options"]["a"] == {"$float": "inf"}
    assert math.isinf(open_workload("mine:anything,a=1e999").run()["a"])


def test_factors_name_the_source_as_it_was_when_it_was_opened(mine: Path) -> None:
    workload = open_workload("mine:add")
    mine.write_text("changed")

    assert workload.factors["source_sha256"] == hashlib.sha256(MINE.encode()).hexdigest()
    assert workload.factors["implementation"] == "mine:add"
    assert workload.factors["distribution"] is None


@pytest.mark.parametrize("name", ["mine:partial", "mine:problem", "mine:Problem", "mine:problem.method"])
def test_source_of_any_python_object_is_known(name: str) -> None:
    assert open_workload(name).factors["source_sha256"] == hashlib.sha256(MINE.encode()).hexdigest()


def test_distribution_is_told_and_built_in_functions_have_no_source() -> None:
    numpy = open_workload("numpy:zeros,shape=3").factors

    assert numpy["distribution"] == f"numpy {importlib.metadata.version('numpy')}"
    assert open_workload("time:process_time").factors["source_sha256"] is None


def test_all_else_is_left_to_the_user() -> None:
    workload = opened("mine:add")

    assert (workload.data_hash, workload.initialisation_hash, workload.runs_per_launch) == (None, None, None)
    assert (workload.scores(), workload.work.items) == ([], None)
    assert type(workload).synchronize.__qualname__ == "Workload.synchronize"


# --- Workload classes -------------------------------------------------------------------------------------------------


def test_own_workload_is_constructed_with_the_arguments() -> None:
    workload = open_workload("mine:Own,size=5")

    assert (type(workload).__name__, workload.run(), workload.spec) == ("Own", 5, "mine:Own,size=5")
    assert plain(workload)["scores"] == {"size": 5}


def test_own_workload_can_import_what_lies_beside_it() -> None:
    assert open_workload("mine:Imports").run() == 8


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine:coroutine", "mine:coroutine is asynchronous: calling it only makes a coroutine"),
        ("mine:partial_coroutine", "is asynchronous"),
        ("mine:generate_asynchronously", "is asynchronous"),
        ("mine:asynchronous", "is asynchronous"),
        ("mine:generate", "is a generator function: calling it does nothing yet"),
        ("mine:number", "mine:number is a int, which cannot be called"),
        ("mine:own", "is a Workload object; name its class"),
        ("mine:Lacking", "The Workload class mine:Lacking does not implement run."),
        ("mine:Own,size=13", "mine:Own cannot be constructed: ValueError: unlucky"),
        ("mine:Own,sise=1", "got an unexpected keyword argument 'sise'. Did you mean 'size'?"),
        ("mine:Own,as=x", "'as' is for functions"),
        ("mine:needs", "missing a required argument: 'what'. Arguments are given as mine:needs,argument=value"),
        ("mine:needs,wat=1", "Did you mean 'what'?"),
        ("mine:add,third=1", "it takes by name: first, second."),
        ("mine:Problem.method", "It is a method, which needs an object"),
        ("mine:add,as=''", "as was given as '' in"),
        ("mine:add,as=3", "as was given as 3 in"),
        ("mine:ad", "mine has no 'ad'. Did you mean 'add'?"),
        ("mine:add@pytorch", "no framework runs the workloads of the kind callable. Leave out @pytorch"),
        ("no_such_module_at_all:f", "there is no module 'no_such_module_at_all'"),
    ],
)
def test_what_cannot_be_measured_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)
