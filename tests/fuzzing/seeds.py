"""The real model files that are damaged."""

from __future__ import annotations

import functools
import importlib.util
import warnings

from deep500.networks.creation import create_model
from tests.conformance.onnx_suite.cases import load_cases

__all__ = ["load_seeds"]

#: Cases of the ONNX project's suite: several families of operators, graphs in graphs, old opsets, texts, sequences.
_CASES = {
    "node": (
        "lstm_with_peepholes",
        "loop11",
        "if",
        "scan9_sum",
        "resize_upsample_scales_linear",
        "attention_3d_gqa_causal",
        "layer_normalization_4d_axis1",
        "sequence_insert_at_front",
        "string_concat",
        "qlinearconv",
        "nllloss_NCd1_weight",
        "scatter_elements_with_axis",
        "top_k",
    ),
    "pytorch-converted": ("Conv2d_groups", "Embedding", "PReLU_2d", "Softmax"),
    "pytorch-operator": ("operator_lstm", "operator_mm"),
}


@functools.cache
def load_seeds(*, exports: bool = True) -> dict[str, bytes]:
    """Return the files by name.

    Args:
        exports: Whether modules of PyTorch, if it is installed, are exported as well, which takes some seconds.
    """
    files = {}
    for name, options in (
        ("mlp", {"shape": (4,), "hidden": (5,)}),
        ("lenet", {"shape": (1, 8, 8), "classes": 3}),
        ("simple_cnn", {"shape": (1, 8, 8), "widths": (3, 4), "classes": 3}),
    ):
        network = create_model(name, **options)
        network.append_loss("SoftmaxCrossEntropyLoss")
        files[name] = network.to_proto().SerializeToString()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about the infinities that cases are made of
        for kind, names in _CASES.items():
            cases = load_cases(kind)
            files |= {name: cases[name].model.SerializeToString() for name in names if name in cases}
    if exports and importlib.util.find_spec("torch"):
        files |= _exports()
    return files


def _exports() -> dict[str, bytes]:
    import torch

    from deep500.networks.network import Network

    torch.manual_seed(0)
    modules = {
        "torch_transformer": (torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), torch.ones(2, 3, 4)),
        "torch_cnn": (
            torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten()),
            torch.ones(2, 1, 5, 5),
        ),
    }
    return {
        name: Network.from_torch(module, example).to_proto().SerializeToString()
        for name, (module, example) in modules.items()
    }
