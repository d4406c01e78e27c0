"""How many floating-point operations each ONNX operator takes, one file an operator family.

A rule takes a node whose shapes are all known and returns a whole number. The conventions: a multiply-add counts 2; an
elementary function of one element (``exp``, ``tanh``, a comparison, a division) counts 1, however it is computed;
positions of a window that lie in the padding count like the others; moving data counts nothing.
"""

from deep500.networks.lowering_table import LoweringTable

__all__ = ["flop_rules"]

#: The rules; the files of this package register theirs here. An operator's author may register one anywhere.
flop_rules = LoweringTable("FLOP count", __name__)
