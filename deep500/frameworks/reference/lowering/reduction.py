"""Reductions, and running sums and products."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("ReduceMean", "reduce_mean", since=18)
take("ReduceSum", "reduce_sum", since=13)
take("ReduceMax", "reduce_max", since=18)
take("ReduceMin", "reduce_min", since=18)
take("ReduceProd", "reduce_prod", since=18)
take("ReduceL1", "reduce_l1", since=18)
take("ReduceL2", "reduce_l2", since=18)
take("ReduceLogSum", "reduce_log_sum", since=18)
take("ReduceLogSumExp", "reduce_log_sum_exp", since=18)
take("ReduceSumSquare", "reduce_sum_square", since=18)
take("CumSum", "cum_sum", since=11)
take("CumProd", "cum_prod", since=26)

take_onnx("ArgMax", since=11)
take_onnx("ArgMin", since=11)
