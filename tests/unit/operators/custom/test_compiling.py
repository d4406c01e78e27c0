from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.operators.custom.compiling import compile_custom_cppop, compile_custom_cppop_inline
from tests.unit.operators.sources import CUBE_SUM, FAILING, IPOWOP, IPOWOP_CLASS, failing

FIVE = [tensordesc("float32", 5)]


def struct(body: str, name: str = "odd") -> str:
    """Return a source that registers a struct; its members begin in line 4."""
    return (
        "#include <deep500/operator.h>\nusing deep500::View;\nstruct Odd {\n"
        f"    static constexpr auto dtypes = deep500::dtypes<float, double>();\n{body}\n}};\n"
        f"D500_OPERATOR({name}, Odd)\n"
    )


FORWARD = "template <typename T> static void forward(View<const T> x, View<T> y) {}\n"

# --- the class of seed 002 and of the published examples ------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        IPOWOP,
        f"#include <cmath>\n#include <deep500/deep500.h>\n{IPOWOP_CLASS}D500_REGISTER_OP(ipowop<DTYPE>);\n",
        f"#include <cmath>\n#include <deep500/deep500.h>\n{IPOWOP_CLASS}",  # as printed, plus the includes
    ],
    ids=["factory", "registered", "printed"],
)
def test_ipowop(source: str) -> None:
    op = compile_custom_cppop_inline("ipowop", source, FIVE, FIVE, additional_definitions={"DPOWER": 3})
    x = np.arange(5, dtype=np.float32)
    y = op(x)

    assert y.tolist() == [0.0, 1.0, 8.0, 27.0, 64.0]
    assert op.run_backward([np.ones_like(x)], [x], [y])[0].tolist() == [0.0, 3.0, 12.0, 27.0, 48.0]
    assert op.report() == 0
    with pytest.raises(OperatorError, match=r"accepted is float32\[5\]"):
        op(np.ones(4, np.float32))


def test_class_in_other_dtype_and_of_any_shape() -> None:
    every = [tensordesc("float64", None)]
    op = compile_custom_cppop_inline("ipowop", IPOWOP, every, every, additional_definitions={"DPOWER": 2})

    assert op.library.description.dtypes == ("float64",)
    for shape in ((3,), (2, 2), (), (0, 4), (3,)):
        x = np.full(shape, 3.0)
        np.testing.assert_array_equal(op(x), x * x)


def test_published_order_of_parameters(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(IPOWOP.replace("std::pow(input[i], DPOWER)", "other(input[i])"))
    (tmp_path / "main.cpp").write_text("float other(float);\n" + (tmp_path / "main.cpp").read_text())
    (tmp_path / "other.cpp").write_text("float other(float x) { return x + 1; }\n")
    op = compile_custom_cppop(
        "ipowop", str(tmp_path / "main.cpp"), FIVE, FIVE, [str(tmp_path / "other.cpp")], False, [],
        {"DTYPE": "float", "DPOWER": 3}, str(tmp_path),
    )  # fmt: skip

    assert op(np.zeros(5, np.float32)).tolist() == [1.0] * 5
    assert op.library.path.is_relative_to(tmp_path)


def test_objects_live_for_a_set_of_shapes_and_report() -> None:
    source = """
    #include <deep500/deep500.h>
    struct counting : public deep500::CustomOperator {
        deep500::tensor_t input, output;
        int64_t calls = 0;
        counting(deep500::tensor_t* in, int n, deep500::tensor_t* out, int m) : input(in[0]), output(out[m - 1]) {}
        void forward(const float* x, const int64_t* unused, float* y, int32_t* facts) {
            ++calls;
            facts[0] = input.type, facts[1] = input.dims, facts[2] = input.dims ? input.sizes[0] : 0;
            facts[3] = output.type, facts[4] = calls;
        }
        int64_t report(void* data) override { return data ? *static_cast<int64_t*>(data) : calls; }
    };
    D500_REGISTER_OP(counting)
    """
    op = compile_custom_cppop_inline(
        "counting", source, infer=lambda shapes, dtypes: ([shapes[0], (5,)], ["float32", "int32"])
    )
    labels = np.zeros(1, np.int64)

    facts = [op(np.ones(shape, np.float32), labels)[1].tolist() for shape in ((7, 2), (7, 2), (), (7, 2), (3,))]

    assert facts == [[10, 2, 7, 3, 1], [10, 2, 7, 3, 2], [10, 0, 0, 3, 1], [10, 2, 7, 3, 3], [10, 1, 3, 3, 1]]
    assert op.report() == 5
    assert not op.differentiable


def test_many_shapes_keep_the_sum_of_reports_and_destroy_objects() -> None:
    source = """
    #include <deep500/deep500.h>
    static int64_t living = 0;
    struct living_op : public deep500::CustomOperator {
        living_op() { ++living; }
        ~living_op() { --living; }
        void forward(const float* x, int64_t* y) { y[0] = living; }
        int64_t report(void*) { return 1; }
    };
    D500_REGISTER_OP(living_op);
    """
    op = compile_custom_cppop_inline("living_op", source, infer=lambda shapes, dtypes: ([(1,)], ["int64"]))

    living = [int(op(np.ones(size, np.float32))[0]) for size in range(1, 601)]

    assert max(living) == 256
    assert op.report() == 600


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("class odd {};", "must derive from deep500::CustomOperator"),
        ("struct odd : deep500::CustomOperator {};", "the operator has no forward"),
        (
            "struct odd : deep500::CustomOperator { void forward(const float* x, int n, float* y); };",
            "is no pointer to",
        ),
        ("struct odd : deep500::CustomOperator { void forward(float* y, const float* x); };", "pointers|out of order"),
        ("struct odd : deep500::CustomOperator { void forward(const float* y); };", "of which there is at least one"),
        (
            "struct odd : deep500::CustomOperator { void forward(const float* x, float* y) {}\n"
            "void backward(const float* g, const float* x, float* d) {} };",
            "backward has the wrong parameters. It takes a 'const T",
        ),
        (
            "struct odd : deep500::CustomOperator { odd(float*) {} void forward(const float* x, float* y) {} };",
            "no object of the class can be made: write 'D500_EXPORTED",
        ),
        (
            "struct odd : deep500::CustomOperator { virtual void more() = 0;\n"
            "void forward(const float* x, float* y) {} };",
            "pure virtual functions",
        ),
    ],
)
def test_wrong_class(body: str, message: str) -> None:
    source = f"#include <deep500/deep500.h>\n{body}\nD500_REGISTER_OP(odd)\n"

    with pytest.raises(CompileError, match=rf"The operator 'odd' did not compile: odd.cpp:\d+: .*{message}"):
        compile_custom_cppop_inline("odd", source)


def test_template_without_dtype() -> None:
    source = f"#include <cmath>\n#include <deep500/deep500.h>\n{IPOWOP_CLASS}"

    with pytest.raises(OperatorError, match="ipowop is a template, and nothing says for which dtype"):
        compile_custom_cppop_inline("ipowop", source, additional_definitions={"DPOWER": 2})


def test_object_that_is_not_made() -> None:
    source = IPOWOP.replace("return new ipowop<DTYPE>(totalsz);", "return nullptr;")
    op = compile_custom_cppop_inline("ipowop", source, FIVE, FIVE, additional_definitions={"DPOWER": 2})

    with pytest.raises(OperatorError, match="ipowop: create_new_op returned no object"):
        op(np.ones(5, np.float32))


# --- what a struct may not be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "the operator has no forward that can be called"),
        ("private: " + FORWARD, "the operator has no forward that can be called"),
        ("template <typename T> void forward(View<const T> x, View<T> y) {}", "forward must be a static function"),
        ("template <typename T> static T forward(View<const T> x, View<T> y) { return 0; }", "must return void"),
        ("template <typename T> static void forward(View<const T> x, T* y, int n) {}", "is nothing that it can get"),
        (
            "template <typename T> static void forward(View<const std::string> x, View<T> y) {}",
            "element type that tens",
        ),
        ("template <typename T> static void forward(View<const T> x, View<const T> y) {}", "forward has no output"),
        ("template <typename T> static void forward(View<T> y, View<const T> x) {}", "forward are out of order"),
        (
            FORWARD + "template <typename T> static void backward(View<const T> g, View<T> d) {}",
            "backward has the wrong number of views",
        ),
        (
            FORWARD + "template <typename T> static void backward(View<const T> g, View<const T> x, View<T> y, "
            "View<T> d) {}",
            "backward has the wrong number of views",
        ),
        (
            FORWARD + "template <typename T> static void backward(View<const T> g, View<const int> x, "
            "View<const T> y, View<T> d) {}",
            "a view of backward has another element type",
        ),
        (
            FORWARD + "template <typename T> static void backward(View<T> d, View<const T> g, View<const T> x, "
            "View<const T> y) {}",
            "the parameters of backward are out of order",
        ),
        (FORWARD + "template <typename T> void backward(View<const T> g) {}", "backward and second must be static"),
        (
            "template <typename T> static void forward(deep500::Optional<const T> x, View<T> y) {}\n"
            "template <typename T> static void backward(View<const T> g, View<const T> x, View<const T> y,\n"
            "View<T> d) {}",
            "Optional in forward and a View in backward",
        ),
        (
            FORWARD + "template <typename T> static void backward(View<const T> g, View<const T> x, View<const T> y, "
            "View<T> d) {}\n template <typename T> static void second(View<const T> g) {}",
            "second has the wrong parameters",
        ),
    ],
)
def test_wrong_struct(body: str, message: str) -> None:
    with pytest.raises(CompileError, match=rf"The operator 'odd' did not compile: odd.cpp:\d+: deep500: .*{message}"):
        compile_custom_cppop_inline("odd", struct(body))


def test_missing_dtypes() -> None:
    source = struct(FORWARD).replace("    static constexpr auto dtypes = deep500::dtypes<float, double>();\n", "")

    with pytest.raises(CompileError, match=r"odd.cpp:7: deep500: .*together with 'static constexpr auto dtypes"):
        compile_custom_cppop_inline("odd", source)


def test_compile_errors_are_shown_at_the_authors_line() -> None:
    source = struct(FORWARD.replace("{}", "{\n        y[0] = undefined_thing;\n    }"))

    with pytest.raises(CompileError) as caught:
        compile_custom_cppop_inline("odd", source)

    headline, *rest = str(caught.value).splitlines()
    assert headline == (
        "The operator 'odd' did not compile: odd.cpp:6: 'undefined_thing' was not declared in this scope"
    )
    assert any("y[0] = undefined_thing;" in line for line in rest)
    assert rest[-1].startswith("Command: ")
    assert " -O3 " in rest[-1]
    assert "ffast-math" not in rest[-1]
    assert caught.value.command[-4:-2][0] == "-c"
    assert "undefined_thing" in caught.value.output


def test_errors_in_an_authors_header_lead_to_the_line_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "helper.h").write_text("#define HELP nothing_here\n")
    (tmp_path / "odd.cpp").write_text('#include "helper.h"\n' + struct(FORWARD.replace("{}", "{ y[0] = HELP; }")))

    with pytest.raises(CompileError, match=r"did not compile: odd.cpp:6: 'nothing_here' was not declared"):
        compile_custom_cppop("odd", tmp_path / "odd.cpp")


def test_link_errors() -> None:
    source = "void missing_function();\n" + struct(FORWARD.replace("{}", "{ missing_function(); }"))

    with pytest.raises(CompileError, match=r"did not compile: linking failed: undefined reference to .*missing_func"):
        compile_custom_cppop_inline("odd", source, flags=["-O0"])


# --- what an operator throws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("runtime_error", "failing: the pump is broken"),
        ("argument", "failing: x must be warm"),
        ("number", "failing: the operator threw something that is no std::exception"),
        ("memory", "failing: there is not enough memory"),
        ("long", "failing: " + 1023 * "x"),
        ("attribute", "failing: the attribute size was not given"),
        ("kind", "failing: the attribute how is not a whole number"),
        ("dimension", "failing: dimension 5 of a tensor of rank 1 was asked for"),
        ("bound", "failing: index 2 is outside of 0 to 1"),
    ],
)
def test_exceptions_become_errors(how: str, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        failing(how)(np.ones(2, np.float32))

    assert str(caught.value) == message


def test_nothing_is_left_of_an_exception() -> None:
    assert failing("")(np.ones(2, np.float32)).tolist() == [1.0, 1.0]


# --- arguments ------------------------------------------------------------------------------------------------------


def test_names_of_functions_must_agree() -> None:
    with pytest.raises(OperatorError, match=r"has no function d5_fails_describe.*D500_OPERATOR\(fails, Class\)"):
        compile_custom_cppop_inline("fails", FAILING)


def test_what_is_left_of_cmake_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"additional_cmake_options were given.*without CMake"):
        compile_custom_cppop("odd", "odd.cpp", additional_cmake_options=["-DX=1"])
    with pytest.raises(OperatorError, match="additional_cmake_options"):
        compile_custom_cppop_inline("odd", "int x;", additional_cmake_options=["-DX=1"])
    with pytest.raises(OperatorError, match="rendered_wrapper"):
        compile_custom_cppop_inline("odd", "int x;", rendered_wrapper="int main() {}")


@pytest.mark.parametrize("code", ["", "  \n", None, 7])
def test_source_that_is_no_text(code: Any) -> None:
    with pytest.raises(OperatorError, match="odd: the source is"):
        compile_custom_cppop_inline("odd", code)


def test_names_that_could_be_paths() -> None:
    with pytest.raises(OperatorError, match="cannot name an operator"):
        compile_custom_cppop_inline("../odd", "int x;")


def test_wrong_attributes_are_refused_at_once() -> None:
    with pytest.raises(OperatorError, match="cube_sum has no attribute 'size'; it has none"):
        compile_custom_cppop_inline("cube_sum", CUBE_SUM, attributes={"size": 1})


def test_live_output(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    source = struct(FORWARD) + "#warning look here\n"
    with caplog.at_level(logging.WARNING):
        compile_custom_cppop_inline("odd", source, live_output=True, output_folder=tmp_path)

    assert re.search(r"g\+\+.* -O3 .*look here", caplog.text, re.DOTALL)


def test_source_that_was_changed_in_the_cache_is_written_again(tmp_path: Path) -> None:
    compile_custom_cppop_inline("odd", struct(FORWARD), output_folder=tmp_path)
    (file,) = tmp_path.glob("source-*/odd.cpp")
    file.write_text("#error changed\n")

    assert compile_custom_cppop_inline("odd", struct(FORWARD), output_folder=tmp_path).input_count == 1
