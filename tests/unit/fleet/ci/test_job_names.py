from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.ci._job_names import matching, stem, subject


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("pytorch_linux_xenial_cuda9_cudnn7_py3_build", "pytorch_linux_xenial_cuda9_cudnn7_py3"),
        ("pytorch_linux_xenial_cuda8_cudnn7_py3_multigpu_test", "pytorch_linux_xenial_cuda8_cudnn7_py3"),
        ("pytorch_linux_xenial_cuda8_cudnn7_py3_NO_AVX_NO_AVX2_test", "pytorch_linux_xenial_cuda8_cudnn7_py3"),
        ("pytorch_linux_xenial_cuda8_cudnn7_py3_NO_AVX2_test", "pytorch_linux_xenial_cuda8_cudnn7_py3"),
        ("py2-clang7-rocmdeb-ubuntu16.04-test", "py2-clang7-rocmdeb-ubuntu16.04"),
        ("pytorch_doc_push", "pytorch_doc_push"),
        ("a_test_build", "a"),  # _build goes first, then _test
        ("a_build_test", "a_build"),  # the study strips each end once, in its order
        ("a_NO_AVX_multigpu", "a_NO_AVX"),
        ("_test", "_test"),
    ],
)
def test_ends_are_cut_off_as_the_study_does(name: str, short: str) -> None:
    assert stem(name) == short


def test_stem_is_the_code_of_the_study() -> None:
    def strip_end(text: str, suffix: str) -> str:  # as printed in its appendix
        if not text.endswith(suffix):
            return text
        return text[: len(text) - len(suffix)]

    ends = ["_build", "_test", "-build", "-test", "_multigpu", "_NO_AVX_NO_AVX2", "_NO_AVX2"]
    for name in [f"x{a}{b}{c}" for a in ["", *ends] for b in ["", *ends] for c in ["", *ends]]:
        k = name
        for end in ends:
            k = strip_end(k, end)
        assert stem(name) == k


def test_a_test_and_its_build_have_one_subject() -> None:
    assert subject("linux-py3 / test (default, 1, 4)") == subject("linux-py3 / build") == "linux-py3"
    assert subject("linux_test") == subject("linux_build")


def test_patterns() -> None:
    names = ("cuda9", "cuda10", "cpu")
    assert matching(names, ["cuda*", "cuda9"], "keep") == [0, 1]
    assert matching(names, [], "keep") == []
    with pytest.raises(FleetError, match=r"keep 'cud' matches none of the 3 jobs"):
        matching(names, ["cud"], "keep")
