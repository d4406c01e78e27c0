"""Activations."""

from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import draw_shape, normal, seeds, spread, unary

for _operator, _file in (
    ("Relu", "relu"),
    ("LeakyRelu", "leaky_relu"),
    ("Sigmoid", "sigmoid"),
    ("Tanh", "tanh"),
    ("Softmax", "softmax"),
    ("LogSoftmax", "log_softmax"),
):
    strategy(_operator)(from_library(_operator, _file))

_alphas = st.sampled_from([1.0, 0.25, 2.5])

strategy("Elu")(unary("Elu", alpha=_alphas))
strategy("Celu")(unary("Celu", alpha=_alphas))
strategy("Selu")(unary("Selu", alpha=_alphas, gamma=st.sampled_from([1.0, 0.5])))
strategy("Gelu")(unary("Gelu", approximate=st.sampled_from(["none", "tanh"])))
strategy("HardSigmoid")(unary("HardSigmoid", alpha=st.sampled_from([0.2, 0.6]), beta=st.sampled_from([0.5, 0.25])))
strategy("HardSwish")(unary("HardSwish", lambda rng, shape: 3.0 * spread(rng, shape)))
strategy("Mish")(unary("Mish"))
strategy("Softplus")(unary("Softplus"))
strategy("Softsign")(unary("Softsign"))
strategy("Swish")(unary("Swish", alpha=st.sampled_from([1.0, 0.5, -2.0])))
# The thresholds lie between the values.
strategy("ThresholdedRelu")(unary("ThresholdedRelu", alpha=st.sampled_from([0.3777, 1.1003])))
strategy("Shrink")(unary("Shrink", lambd=st.sampled_from([0.3777, 1.1003]), bias=st.sampled_from([0.0, 0.25])))


@strategy("PRelu")
@st.composite
def p_relu(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, least=0)
    slope = [1 if draw(st.booleans()) else size for size in shape]
    slope = slope[draw(st.integers(0, len(slope))) :] if draw(st.booleans()) else slope
    rng = draw(seeds)
    return GradientCase("PRelu", [spread(rng, shape), normal(rng, tuple(slope))], differentiable=(0, 1))


@strategy("SwiGLU")
@st.composite
def swiglu(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw, least=1)
    return GradientCase("SwiGLU", [spread(rng, shape), spread(rng, shape)], differentiable=(0, 1))


@strategy("Hardmax")
@st.composite
def hardmax(draw: Draw) -> GradientCase:
    shape = draw_shape(draw)
    return GradientCase("Hardmax", [spread(draw(seeds), shape)], {"axis": draw(st.integers(-len(shape), -1))})
