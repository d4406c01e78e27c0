"""What each ONNX operator is in TensorFlow, one file an operator family."""

from deep500.networks.lowering_table import LoweringTable

__all__ = ["lowerings"]

#: The lowerings; the files of this package register theirs here.
lowerings = LoweringTable("tensorflow", __name__)
