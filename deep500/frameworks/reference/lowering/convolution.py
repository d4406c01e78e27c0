"""Convolutions. CausalConvWithState is run by its definition."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Conv", "conv", since=11)
take("ConvTranspose", "conv_transpose", since=11)
take("DeformConv", "deform_conv", since=19)
take("Col2Im", "col2im", since=18)
