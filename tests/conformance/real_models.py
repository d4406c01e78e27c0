"""Architectures written by others, with random weights: what the conformance tests run besides models made for tests.

Sources: layers of ``torch.nn``, ``keras.applications``, the models that the package ``onnx`` brings for its own tests
("light": real graphs without their trained weights), and, where they are installed (the extra ``testmodels``),
torchvision, timm, transformers, diffusers, segmentation-models-pytorch, pytorchcv and MONAI.
"""

from __future__ import annotations

from tests.conformance.keras_models import keras_model
from tests.conformance.real_model_sources import (
    Recipe,
    light_model,
    smp_model,
    timm_model,
    torch_model,
    transformer_model,
    unet_model,
)

__all__ = ["MODELS"]

_WORDS = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_FEW = {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)}

#: Layers of torch.nn: always here with PyTorch.
_TORCH = [
    Recipe(
        "torch-transformer",
        torch_model(
            "torch.nn.Transformer",
            (2, 6, 16),
            (2, 5, 16),
            d_model=16,
            nhead=2,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=32,
            dropout=0.0,
            batch_first=True,
        ),
        ("torch",),
    ),
    Recipe(
        "torch-transformer-layer",
        torch_model(
            "torch.nn.TransformerEncoderLayer",
            (5, 2, 16),
            d_model=16,
            nhead=4,
            dim_feedforward=24,
            dropout=0.0,
            activation="gelu",
            norm_first=True,
        ),
        ("torch",),
    ),
    *(
        Recipe(
            f"torch-{name.lower()}",
            torch_model(f"torch.nn.{name}", (3, 6, 5), input_size=5, hidden_size=7, batch_first=True, **settings),
            ("torch",),
        )
        for name, settings in {
            "LSTM": {"num_layers": 2, "bidirectional": True},
            "GRU": {"num_layers": 2},
            "RNN": {"bidirectional": True},
        }.items()
    ),
]

#: keras.applications: always here with TensorFlow and tf2onnx.
_KERAS = [
    Recipe(
        "keras-mobilenet-v3",
        keras_model("MobileNetV3Small", 64, alpha=0.35, dropout_rate=0.0),
        ("keras", "tf2onnx"),
    ),
    Recipe(
        "keras-densenet",
        keras_model("DenseNet121", 64, batch=2, generic="DenseNet", blocks=[1, 1, 1, 1]),
        ("keras", "tf2onnx"),
        True,
    ),
    Recipe(
        "keras-convnext",
        keras_model(
            "ConvNeXtTiny",
            64,
            generic="ConvNeXt",
            depths=[1, 1, 1, 1],
            projection_dims=[8, 16, 24, 32],
            include_preprocessing=False,
        ),
        ("keras", "tf2onnx"),
        True,
    ),
    *(
        Recipe(
            f"keras-{name.lower()}", keras_model(name, size, **settings), ("keras", "tf2onnx"), True, by_reference=False
        )
        for name, size, settings in [
            ("MobileNetV2", 64, {"alpha": 0.35}),
            ("EfficientNetB0", 64, {}),
            ("EfficientNetV2B0", 64, {}),
            ("ResNet50", 64, {}),
            ("ResNet50V2", 64, {}),
            # Of smaller images, these two have one element left at the end: statistics of as many numbers as images.
            ("InceptionV3", 107, {}),
            ("InceptionResNetV2", 107, {}),
            ("Xception", 71, {}),
            ("NASNetMobile", 64, {}),
            ("DenseNet121", 64, {}),
            ("VGG16", 32, {}),
        ]
    ),
]

#: The ONNX project's own: always here.
_ONNX = [
    Recipe("onnx-squeezenet", light_model("squeezenet"), ()),
    Recipe("onnx-shufflenet", light_model("shufflenet", 1), ()),
    *(
        Recipe(f"onnx-{name}", light_model(name, head), (), True, by_reference=False)
        for name, head in {
            "bvlc_alexnet": 1,
            "densenet121": 0,
            "inception_v1": 1,
            "inception_v2": 1,
            "resnet50": 1,
            "vgg19": 1,
            "zfnet512": 1,
        }.items()
    ),
]

#: Of packages that need not be installed: the extra ``testmodels``.
_FURTHER = [
    Recipe(
        "timm-vit",
        timm_model("vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2, embed_dim=24, num_heads=3),
        ("timm",),
    ),
    Recipe(
        "timm-swin",
        timm_model(
            "swin_tiny_patch4_window7_224",
            32,
            batch=2,
            img_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=12,
            depths=(2, 2),
            num_heads=(2, 3),
        ),
        ("timm",),
    ),
    Recipe("timm-convnext", timm_model("convnext_atto", 64, **_FEW), ("timm",)),
    Recipe("timm-mobilevit", timm_model("mobilevit_xxs", 64, batch=2), ("timm",), True),
    Recipe("timm-mixer", timm_model("mixer_s32_224", 64, img_size=64), ("timm",), True, by_reference=False),
    Recipe("timm-mobilenet-v3", timm_model("mobilenetv3_small_050", 64, train=True), ("timm",), True),
    Recipe("timm-regnet", timm_model("regnety_002", 64, train=True), ("timm",), True),
    Recipe("timm-resnest", timm_model("resnest14d", 64, train=True), ("timm",), True, by_reference=False),
    Recipe("timm-efficientnet", timm_model("efficientnet_b0", 64, train=True), ("timm",), True, by_reference=False),
    Recipe("timm-inception", timm_model("inception_v3", 96, train=True), ("timm",), True, by_reference=False),
    Recipe(
        "torchvision-resnet",
        torch_model("torchvision.models.resnet18", (4, 3, 64, 64), train=True, num_classes=10),
        ("torchvision",),
        by_reference=False,
    ),
    Recipe(
        "torchvision-shufflenet",
        torch_model("torchvision.models.shufflenet_v2_x0_5", (4, 3, 64, 64), train=True, num_classes=10),
        ("torchvision",),
        True,
    ),
    Recipe("smp-unet", smp_model("Unet", "resnet18"), ("segmentation_models_pytorch",), True, by_reference=False),
    Recipe(
        "smp-deeplab",
        smp_model("DeepLabV3Plus", "resnet18", decoder_aspp_dropout=0.0),
        ("segmentation_models_pytorch",),
        True,
        by_reference=False,
    ),
    Recipe(
        "transformers-bert",
        transformer_model("Bert", ["input_ids"], "last_hidden_state", **_WORDS, **_NO_DROPOUT),
        ("transformers",),
    ),
    Recipe(
        "transformers-gpt2",
        transformer_model(
            "GPT2:LMHeadModel",
            ["input_ids"],
            "logits",
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=16,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        ),
        ("transformers",),
    ),
    Recipe(
        "transformers-llama",
        transformer_model("Llama:ForCausalLM", ["input_ids"], "logits", num_key_value_heads=2, **_WORDS),
        ("transformers",),
    ),
    Recipe(
        "transformers-t5",
        transformer_model(
            "T5:ForConditionalGeneration",
            ["input_ids", "decoder_input_ids"],
            "logits",
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=2,
            num_heads=4,
            dropout_rate=0.0,
        ),
        ("transformers",),
    ),
    Recipe(
        "transformers-whisper",
        transformer_model(
            "Whisper",
            ["decoder_input_ids"],
            "last_hidden_state",
            sound=(2, 8, 24),
            num_mel_bins=8,
            d_model=16,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            max_source_positions=12,
            max_target_positions=8,
            dropout=0.0,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        ),
        ("transformers",),
    ),
    Recipe("diffusers-unet", unet_model, ("diffusers",)),
    Recipe(
        "monai-unet-3d",
        torch_model(
            "monai.networks.nets.UNet",
            (2, 1, 16, 16, 16),
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            channels=(4, 8, 16),
            strides=(2, 2),
            num_res_units=1,
        ),
        ("monai.networks.nets",),
    ),
    Recipe(
        "pytorchcv-seresnet",
        torch_model(
            "pytorchcv.model_provider.get_model",
            (4, 3, 32, 32),
            name="seresnet20_cifar10",
            train=True,
        ),
        ("pytorchcv.model_provider",),
        True,
        by_reference=False,
    ),
]

MODELS: list[Recipe] = [*_TORCH, *_KERAS, *_ONNX, *_FURTHER]
