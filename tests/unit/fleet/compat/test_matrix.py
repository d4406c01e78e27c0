from __future__ import annotations

from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.matrix import Matrix
from tests.unit.fleet.compat.support import matrix_of


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[1, 2]", "not accepted at the matrix itself"),
        ("frameworks: {}", "frameworks"),
        ("ranks: [1]", "'frameworks' is missing"),
        ("frameworks: {a: ['1']}\nrank: [1]", "'rank' is not known. Did you mean 'ranks'?"),
        ("frameworks: {a: {version: ['1']}}", "Did you mean 'versions'?"),
        ("frameworks: {a: ['1']}\npython: [3.10]", "at python.0: 3.1 is a number; write it in quotes"),
        ("frameworks: {a: ['1']}\npython: [3]", "3 is a number; write it in quotes"),
        ("frameworks: {a: newest}", "frameworks.a"),
        ("frameworks: {a: [1.0]}", "at frameworks.a.0: 1.0 is a number; write it in quotes"),
        ("frameworks: {a: ['1']}\nranks: [0]", "ranks.0"),
        ("frameworks: {a: ['1']}\ntimeout_s: 0", "timeout_s"),
        ("frameworks: {a: ['1']}\nrules: [{reason: x}]", "rules.0"),
        ("frameworks: {a: ['1']}\npool: [{compute_capability: '8.0'}]", "pool.0"),
        ("frameworks: {a: ['1']}\nframeworks: {b: ['1']}", "'frameworks' is given twice"),
        ("frameworks: {a: [", "is no YAML"),
        ("frameworks: !!python/object/apply:os.system ['true']", "is no YAML"),
        ("frameworks: {'a b; rm': ['1']}", "frameworks"),
        ("frameworks: {a: ['1']}\nextra_requirements: [\"a\\nb\"]", "extra_requirements.0"),
        ("frameworks: {a: ['1'], 12.8: ['1']}", "the key 12.8 is no text; write it in quotes"),
        ("frameworks: {a: [2024-01-01]}", "write it in quotes if a text is meant"),
        ("frameworks: {a: [' 1']}", "frameworks.a.0"),
        ("frameworks: {a-b: ['1'], A_b: ['1']}", "are one distribution"),
        ("frameworks: {a: newest 100000}", "such as newest 3"),
        ("frameworks: {a: ['1']}\nranks: 2", "needed is a list. Write [2]"),
        ("frameworks: {a: ['1']}\nranks: [100000]", "ranks.0"),
        ("frameworks: {a: ['1']}\npython: ['3.11.4']", "of two numbers"),
        ("frameworks: {a: ['1']}\ntimeout_s: .nan", "is no number that could be meant"),
        ("frameworks: {a: ['1']}\ncost: {cell_s: .inf}", "is no number that could be meant"),
        (f"frameworks: {{a: ['1']}}\nmemory_mb: 1{'0' * 400}", "is no number that could be meant"),
        (f"frameworks: {{a: ['1']}}\nmemory_mb: 1{'0' * 5000}", "is no YAML"),
        ("frameworks: &a {numpy: *a}", "nested too deeply"),
        (f"frameworks: {'[' * 600}{']' * 600}", "nested too deeply"),
        ('name: "\\ud800"\nframeworks: {a: ["1"]}', "a control character"),
        ('name: "\\e[31m"\nframeworks: {a: ["1"]}', "a control character"),
        ("frameworks: {a: {versions: ['1'], extras: ['b]; c']}}", "frameworks.a.extras.0"),
        ("frameworks: {a: ['1']}\npip: {index_url: 'http://b --pre'}", "pip.index_url"),
    ],
)
def test_faults_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError) as raised:
        matrix_of(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_few_lines_that_unfold_to_many_values(tmp_path: Path) -> None:
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi")]
    with pytest.raises(FleetError, match="more than 200,000 values"):
        matrix_of(tmp_path, "\n".join([*lines, "frameworks: {a: ['1']}"]))
    merged = "frameworks: {a: &a {versions: ['1'], adapter: b}, c: {<<: *a, adapter: d}}"
    assert matrix_of(tmp_path, merged).frameworks["c"] == {"versions": ["1"], "adapter": "d"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--index-url https://example.org", "an option of pip"),
        ("-r other.txt", "an option of pip"),
        ("scipy; rm -rf /", "is none, such as"),
        ("$(true)", "is none, such as"),
        ("./none.whl", "no file or folder beside it"),
        ("~no_such_user_here/a", "is no path"),
    ],
)
def test_requirements_that_are_none(line: str, message: str, tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path, f"frameworks: {{a: ['1']}}\nextra_requirements: ['{line}']")
    with pytest.raises(FleetError, match=message):
        matrix.requirements("a", "1", None, None)


def test_recipes_and_probes_that_are_not_there(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path, "frameworks: {a: {versions: ['1'], probe: numpi}}")
    with pytest.raises(FleetError, match="Did you mean 'numpy'"):
        matrix.probe("a")
    with pytest.raises(FleetError, match="Did you mean 'digits_mlp'"):
        matrix.recipe("digits_mlq")
    (tmp_path / "loop.py").symlink_to("loop.py")
    for name in ("none.py", "loop.py", f"{'a' * 300}.py"):
        with pytest.raises(FleetError, match=r"no file beside it|is no path"):
            matrix.recipe(name)
    other = matrix_of(tmp_path, "frameworks: {a: ['1']}\ndeep500: deep500==2.0")
    assert other.recipe("of_another_release") == "of_another_release"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="cannot be read"):
        Matrix.read(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("name: é".encode("latin-1"))
    with pytest.raises(FleetError, match="no UTF-8"):
        Matrix.read(tmp_path / "latin.yaml")


def test_requirements_and_options_of_layers(tmp_path: Path) -> None:
    for name in ("own.whl", "deep500.whl"):
        (tmp_path / name).touch()
    matrix = matrix_of(
        tmp_path,
        """
frameworks:
  torch:
    versions: ["2.13.0"]
    extra_requirements: [numpy]
    pip: {extra_index_url: [https://example.org/simple]}
    cuda:
      none: {pip: {index_url: https://example.org/cpu}}
      "12.8": {extras: [gpu], extra_requirements: [triton], pip: {index_url: https://example.org/cu128}}
extra_requirements: [mpi4py, numpy, ./own.whl]
deep500: ./deep500.whl
pip: {find_links: [wheels], no_index: true, index_url: https://example.org/for-all}
""",
    )
    assert matrix.requirements("torch", "2.13.0", "12.8", "digits_mlp") == (
        "torch[gpu]==2.13.0",
        "triton",
        "numpy",
        "mpi4py",
        str(tmp_path / "own.whl"),
        str(tmp_path / "deep500.whl"),
    )
    assert matrix.requirements("torch", "2.13.0", None, None)[0] == "torch==2.13.0"
    assert matrix.pip_options("torch", None) == (
        "--no-index",
        "--index-url https://example.org/cpu",
        "--extra-index-url https://example.org/simple",
        f"--find-links {tmp_path / 'wheels'}",
    )
    assert "--index-url https://example.org/cu128" in matrix.pip_options("torch", "12.8")


def test_hash_follows_content_not_form(tmp_path: Path) -> None:
    one = matrix_of(tmp_path, "frameworks: {a: ['1.0']}\nranks: [1]")
    other = matrix_of(tmp_path, "ranks:\n- 1\nframeworks:\n  a:\n  - '1.0'\n")
    assert one.hash == other.hash != matrix_of(tmp_path, "frameworks: {a: ['1.1']}\nranks: [1]").hash
