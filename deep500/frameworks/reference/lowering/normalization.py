"""Normalisation. The operators that are not listed are run by their definitions."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("BatchNormalization", "batch_normalization", since=15)
take("InstanceNormalization", "instance_normalization", since=6)
take("LayerNormalization", "layer_normalization", since=17)
take("LpNormalization", "lp_normalization", since=1)
take("LRN", "lrn", since=1)
