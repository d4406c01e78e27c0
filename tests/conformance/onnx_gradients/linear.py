"""Products of matrices and tensors, and determinants."""

import numpy as np
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import normal, seeds, sizes

strategy("Gemm")(from_library("Gemm", "gemm"))
strategy("MatMul")(from_library("MatMul", "mat_mul"))

#: Equations, with the letters of an ellipsis in each input.
_EQUATIONS = (
    ("ij,jk->ik", ("", "")),
    ("ij,jk", ("", "")),
    ("bij, bjk -> bik", ("", "")),
    ("...ij,...jk->...ik", ("z", "z")),
    ("...ij,...jk->...ik", ("yz", "yz")),
    ("i,j->ij", ("", "")),
    ("ij->ji", ("",)),
    ("ij->j", ("",)),
    ("ij->", ("",)),
    ("ii", ("",)),
    ("ii->i", ("",)),
    ("iij,j->i", ("", "")),
    ("...ii->...i", ("yz",)),
    ("ij,j,jk->ik", ("", "", "")),
    ("abc,cd", ("", "")),
    ("i,i", ("", "")),
    ("ij,k->k", ("", "")),
)


@strategy("Einsum")
@st.composite
def einsum(draw: Draw) -> GradientCase:
    equation, ellipses = draw(st.sampled_from(_EQUATIONS))
    size = {letter: draw(sizes) for letter in "abcdijkyz"}
    rng, inputs = draw(seeds), []
    for term, hidden in zip(equation.replace(" ", "").split("->")[0].split(","), ellipses, strict=True):
        letters = term.replace("...", hidden)
        # Axes of an ellipsis broadcast.
        shape = [1 if letter in hidden and draw(st.integers(0, 3)) == 0 else size[letter] for letter in letters]
        inputs.append(normal(rng, tuple(shape)))
    return GradientCase("Einsum", inputs, {"equation": equation}, differentiable=tuple(range(len(inputs))))


@strategy("Det")
@st.composite
def det(draw: Draw) -> GradientCase:
    batch, order = draw(st.lists(sizes, max_size=1)), draw(sizes)
    return GradientCase("Det", [normal(draw(seeds), (*batch, order, order)) + np.eye(order)])
