from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from deep500.core.errors import DatasetError
from deep500.datasets import decoding
from deep500.datasets.decoding import ImageDecoder, image_size
from tests.dataset_files import jpeg, photograph

PICTURE = photograph(1, 2, 40, 48)


def encoded(pixels: Any, form: str, mode: str | None = None, **arguments: Any) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, form, **arguments)
    return file.getvalue()


def without_simplejpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_fast_jpeg", lambda: None)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_lossless_formats_are_exact(form: str) -> None:
    arguments = {"lossless": True} if form == "WEBP" else {}

    read = ImageDecoder((40, 48), dtype="uint8").decode(encoded(PICTURE, form, **arguments))

    np.testing.assert_array_equal(read, PICTURE.transpose(2, 0, 1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["colour", "grey", "progressive", "fine", "four-colour", "three-colour", "odd"])
def test_both_decoders_of_jpeg_give_the_same(channels: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("simplejpeg")
    picture = PICTURE[:39, :41] if kind == "odd" else PICTURE
    if kind == "four-colour":
        content = encoded(picture, "JPEG", "CMYK")
    elif kind == "three-colour":
        content = jpeg(picture, keep_rgb=True)
    elif kind == "grey":
        content = jpeg(picture[..., 0])
    else:
        content = jpeg(picture, progressive=kind == "progressive", subsampling=0 if kind == "fine" else 2)
    decoder = ImageDecoder(picture.shape[:2], channels=channels, dtype="uint8")  # type: ignore[arg-type]
    fast = decoder.decode(content)
    without_simplejpeg(monkeypatch)

    np.testing.assert_array_equal(decoder.decode(content), fast)


def test_numbers_are_those_of_the_formula() -> None:
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    pixels = PICTURE.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    scaled = (pixels - np.float32(mean).reshape(3, 1, 1)) / np.float32(deviation).reshape(3, 1, 1)
    content = encoded(PICTURE, "PNG")

    np.testing.assert_array_equal(ImageDecoder((40, 48)).decode(content), pixels)
    decoder = ImageDecoder((40, 48), mean=mean, standard_deviation=deviation)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(decoder)).decode(content), scaled)
    out = np.full((5, 3, 40, 48), 7, np.float32)
    decoder.decode_into(content, out[2])
    np.testing.assert_array_equal(out[2], scaled)
    assert (out[[0, 1, 3, 4]] == 7).all()


def test_cropping_takes_the_centre() -> None:
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 200

    cut = ImageDecoder(20, dtype="uint8").decode(encoded(wide, "PNG"))
    stretched = ImageDecoder(20, fit="stretch", dtype="uint8").decode(encoded(wide, "PNG"))

    assert (cut[:, :, 1:-1] == 200).all()
    assert (stretched[:, 10, 10] == 200).all()
    assert (stretched[:, 10, 0] == 0).all()


@pytest.mark.parametrize("size", [(20, 20), (40, 48), (64, 32)])
def test_scaling_with_resize_is_that_of_scaling_then_cutting(size: tuple[int, int]) -> None:
    whole = np.asarray(Image.fromarray(PICTURE).resize((96, 80), Image.Resampling.BILINEAR))
    top, left = (80 - size[0]) // 2, (96 - size[1]) // 2
    expected = whole[top : top + size[0], left : left + size[1]].astype(int)

    read = ImageDecoder(size, resize=80, dtype="uint8").decode(encoded(PICTURE, "PNG"))

    # At its edges, Pillow does not look beyond what is cut out.
    difference = np.abs(read.transpose(1, 2, 0).astype(int) - expected)
    assert difference[1:-1, 1:-1].max() <= 1
    assert difference.max() <= 8


@given(
    st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.sampled_from(["crop", "stretch"])
)
def test_every_size_becomes_every_size(height: int, width: int, rows: int, columns: int, fit: str) -> None:
    pixels = np.full((height, width, 3), 77, np.uint8)

    read = ImageDecoder((rows, columns), fit=fit, dtype="uint8").decode(encoded(pixels, "PNG"))

    assert read.shape == (3, rows, columns)
    assert (read == 77).all()


def test_exact_refuses_other_sizes() -> None:
    with pytest.raises(DatasetError, match=r"a\.jpg has 40 x 48 pixels; accepted are 40 x 40"):
        ImageDecoder(40, fit="exact").decode(jpeg(PICTURE), "a.jpg")


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "BMP", "TIFF", "WEBP"])
def test_truncated_images_are_named(form: str, fast: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not fast:
        without_simplejpeg(monkeypatch)
    content = encoded(PICTURE, form)
    for size in (0, 1, 2, 20, len(content) // 4, len(content) // 2, len(content) - 40):
        (tmp_path / "cut").write_bytes(content[:size])
        with pytest.raises(DatasetError, match=r"cut .*truncated, damaged, or no image|cut has"):
            ImageDecoder((40, 48))(tmp_path / "cut")


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_an_image_or_one_error(content: bytes, as_jpeg: bool) -> None:
    content = (b"\xff\xd8" if as_jpeg else b"") + content
    with pytest.raises(DatasetError):
        ImageDecoder(8).decode(content)
    with pytest.raises(DatasetError):
        image_size(content)


@given(st.data())
def test_damaged_images_raise_nothing_else(data: st.DataObject) -> None:
    content = bytearray(
        encoded(PICTURE, data.draw(st.sampled_from(["JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM"])))
    )
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=5)):
        content[place] = data.draw(st.integers(0, 255))
    try:
        ImageDecoder((40, 48)).decode(bytes(content))
    except DatasetError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_more_than_8_bits_are_refused() -> None:
    with pytest.raises(DatasetError, match="more than 8 bits"):
        ImageDecoder(4).decode(encoded(np.zeros((4, 4), np.uint16), "PNG"))


def test_mislabelled_files_are_decoded_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "a.JPEG").write_bytes(encoded(PICTURE, "PNG"))  # ImageNet has one

    np.testing.assert_array_equal(
        ImageDecoder((40, 48), dtype="uint8")(tmp_path / "a.JPEG"), PICTURE.transpose(2, 0, 1)
    )


def test_sizes_of_images() -> None:
    assert image_size(jpeg(PICTURE)) == (40, 48)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size"),
        ({"size": (3, 4, 5)}, "size"),
        ({"size": 2.5}, "size"),
        ({"size": 8, "channels": 4}, "channels"),
        ({"size": 8, "fit": "pad"}, "fit"),
        ({"size": 8, "resize": 7}, "resize"),
        ({"size": 8, "resize": 9, "fit": "stretch"}, "resize"),
        ({"size": 8, "dtype": "float16"}, "dtype"),
        ({"size": 8, "dtype": "uint8", "mean": (0, 0, 0)}, "not normalised"),
        ({"size": 8, "mean": (0, 0)}, "mean"),
        ({"size": 8, "standard_deviation": (0, 1, 1)}, "positive"),
        ({"size": 8, "mean": (0, np.nan, 0)}, "mean"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        ImageDecoder(**arguments)


@pytest.mark.skipif(not decoding.FAST_JPEG.is_installed(), reason="only the fast decoder has no limit of its own")
def test_images_that_would_use_up_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    Image.new("L", (64, 64)).save(file, "JPEG")
    monkeypatch.setattr(decoding, "_MOST_FAST_PIXELS", 1000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)

    with pytest.raises(DatasetError, match="exceeds limit"):
        ImageDecoder(8).decode(file.getvalue())
