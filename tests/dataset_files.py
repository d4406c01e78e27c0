"""Small files in exactly the formats in which data sets are published, for tests of data sets and of recipes."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deep500.datasets._idx import IDX_TYPES

IDX_NAMES = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)


def pictures(count: int, shape: tuple[int, ...], classes: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return bytes ``[count, *shape]`` and labels; each class has a brightness and a pattern, so that they can be
    learned."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    patterns = np.random.default_rng(1).integers(0, 256, (classes, *shape))
    noise = random.integers(0, 256, (count, *shape))
    return ((patterns[labels] * 3 + noise) // 4).astype(np.uint8), labels.astype(np.uint8)


def idx_bytes(array: NDArray[Any]) -> bytes:
    """Return an array in the IDX format."""
    code = next(code for code, name in IDX_TYPES.items() if np.dtype(name) == array.dtype.newbyteorder(">"))
    header = bytes((0, 0, code, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_idx(folder: Path, name: str, array: NDArray[Any], compressed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{name}.gz" if compressed else name)
    content = idx_bytes(array)
    path.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    return path


def write_mnist(
    folder: Path, train: int = 40, test: int = 20, *, compressed: bool = True, size: int = 28, name: str = "mnist"
) -> Path:
    """Write MNIST's four files to ``folder/mnist``; returns ``folder``."""
    for number, ((images, labels), count) in enumerate(zip(IDX_NAMES, (train, test))):
        pixels, numbers = pictures(count, (size, size), 10, number)
        write_idx(folder / name, images, pixels, compressed)
        write_idx(folder / name, labels, numbers, compressed)
    return folder


def write_fashion_mnist(folder: Path, train: int = 40, test: int = 20, **arguments: Any) -> Path:
    return write_mnist(folder, train, test, name="fashion_mnist", **arguments)


def write_kmnist(folder: Path, train: int = 40, test: int = 20, **arguments: Any) -> Path:
    return write_mnist(folder, train, test, name="kmnist", **arguments)


def binary_records(count: int, label_columns: Sequence[int], seed: int = 0) -> bytes:
    """Return records of CIFAR's binary version; ``label_columns`` holds the number of classes of each label."""
    pixels, numbers = pictures(count, (3072,), label_columns[-1], seed)
    columns = [numbers % classes for classes in label_columns]
    return np.column_stack([*columns, pixels]).astype(np.uint8).tobytes()


def python2_pickle(parts: Mapping[str, Any]) -> bytes:
    """Return a dictionary as Python 2 and its NumPy pickled it: protocol 2, texts of bytes, ``numpy.core``."""
    out = io.BytesIO()
    out.write(b"\x80\x02}(")
    for key, value in parts.items():
        out.write(_python2_text(key.encode()))
        if isinstance(value, np.ndarray):
            out.write(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R")
            rows, columns = (b"J" + struct.pack("<i", size) for size in value.shape)
            out.write(b"(K\x01" + rows + columns + b"\x86")
            out.write(b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
            out.write(b"\x89" + _python2_text(value.tobytes()) + b"tb")
        elif isinstance(value, list):
            out.write(b"](")
            for item in value:
                out.write(b"J" + struct.pack("<i", item) if isinstance(item, int) else _python2_text(item.encode()))
            out.write(b"e")
        else:
            out.write(_python2_text(value.encode()))
    out.write(b"u.")
    return out.getvalue()


def _python2_text(content: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(content)) + content


def write_files(folder: Path, contents: Mapping[str, bytes], archive: str | None) -> Path:
    """Write files to ``folder``, or as members of ``folder/archive``."""
    folder.mkdir(parents=True, exist_ok=True)
    if archive is not None:
        write_tar(folder / archive, list(contents.items()))
        return folder
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_tar(path: Path, members: Sequence[tuple[str, bytes | str]], mode: str = "w:gz") -> Path:
    """Write a tar archive; a member whose content is a text is a symbolic link to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def cifar10_files(version: str = "binary", images: int = 6) -> dict[str, bytes]:
    """Return CIFAR-10's files by their path in the archive, with ``images`` images each."""
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    if version == "binary":
        return {f"cifar-10-batches-bin/{n}.bin": binary_records(images, [10], i) for i, n in enumerate(names)}
    files = {}
    for number, name in enumerate(names):
        pixels, labels = pictures(images, (3072,), 10, number)
        parts = {"batch_label": f"batch {number + 1} of 5", "labels": labels.tolist(), "data": pixels}
        files[f"cifar-10-batches-py/{name}"] = python2_pickle({**parts, "filenames": [f"{i}.png" for i in labels]})
    return files


def write_cifar10(folder: Path, images: int = 6, *, version: str = "binary", archive: bool = False) -> Path:
    """Write CIFAR-10, ``images`` images a file (5 files for training, 1 for the test); returns ``folder``."""
    return write_files(folder, cifar10_files(version, images), f"cifar-10-{version}.tar.gz" if archive else None)


def cifar100_files(version: str = "binary", train: int = 200, test: int = 100) -> dict[str, bytes]:
    if version == "binary":
        return {
            f"cifar-100-binary/{name}.bin": binary_records(count, [20, 100], seed)
            for seed, (name, count) in enumerate((("train", train), ("test", test)))
        }
    files = {}
    for seed, (name, count) in enumerate((("train", train), ("test", test))):
        pixels, labels = pictures(count, (3072,), 100, seed)
        parts = {"fine_labels": labels.tolist(), "coarse_labels": (labels % 20).tolist(), "data": pixels}
        files[f"cifar-100-python/{name}"] = python2_pickle({"batch_label": f"{name} batch", **parts})
    return files


def write_cifar100(
    folder: Path, train: int = 200, test: int = 100, *, version: str = "binary", archive: bool = False
) -> Path:
    contents = cifar100_files(version, train, test)
    return write_files(folder, contents, f"cifar-100-{version}.tar.gz" if archive else None)


def jpeg(pixels: NDArray[np.uint8], quality: int = 90, **arguments: Any) -> bytes:
    """Return pixels ``[H, W, 3]`` or ``[H, W]`` as a JPEG."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality, **arguments)
    return file.getvalue()


def photograph(label: int, number: int, height: int = 40, width: int = 48) -> NDArray[np.uint8]:
    """Return a smooth picture ``[H, W, 3]`` whose colour and pattern tell the class."""
    random = np.random.default_rng((label, number))
    base = np.random.default_rng(label).integers(0, 256, (4, 4, 3))
    coarse = np.clip(base + random.integers(-20, 21, (4, 4, 3)), 0, 255).astype(np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR))


SYNSETS = ("n01440764", "n01443537", "n01484850", "n01491361")


def write_imagenet_folder(
    folder: Path,
    train: int = 6,
    val: int = 3,
    *,
    classes: int = 3,
    flat: bool = False,
    size: tuple[int, int] = (40, 48),
) -> Path:
    """Write ``folder/imagenet/train/CLASS/*.JPEG`` and val likewise, or flat with ``LOC_val_solution.csv``; the numbers
    are images a class."""
    root = folder / "imagenet"
    rows = ["ImageId,PredictionString"]
    for label, synset in enumerate(SYNSETS[:classes]):
        (root / "train" / synset).mkdir(parents=True, exist_ok=True)
        for number in range(train):
            content = jpeg(photograph(label, number, *size))
            (root / "train" / synset / f"{synset}_{number}.JPEG").write_bytes(content)
        for number in range(val):
            # In the published set, the order of the images tells nothing of their classes.
            name = f"ILSVRC2012_val_{number * classes + classes - label:08}"
            place = root / "val" if flat else root / "val" / synset
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name}.JPEG").write_bytes(jpeg(photograph(label, 1000 + number, *size)))
            rows.append(f"{name},{synset} 1 2 30 40 ")
    if flat:
        (root / "LOC_val_solution.csv").write_text("\n".join(rows) + "\n")
    return folder


def write_imagenet_shards(
    folder: Path, train: int = 6, val: int = 3, *, classes: int = 3, shards: int = 2, label: str = "cls"
) -> Path:
    """Write WebDataset shards to ``folder/imagenet``; the numbers are images a class."""
    for part, count, first in (("train", train, 0), ("val", val, 1000)):
        members: list[list[tuple[str, bytes | str]]] = [[] for _ in range(shards)]
        for number in range(count * classes):
            kind = number % classes
            content = str(kind).encode() if label == "cls" else json.dumps({"label": kind}).encode()
            members[number * shards // (count * classes)] += [
                (f"{part}/{number:06}.jpg", jpeg(photograph(kind, first + number // classes))),
                (f"{part}/{number:06}.{label}", content),
            ]
        for number, of_one in enumerate(members):
            write_tar(folder / "imagenet" / f"imagenet-{part}-{number:06}.tar", of_one, "w:")
    return folder


ACTIONS = ("ApplyEyeMakeup", "ApplyLipstick", "YoYo")


def ucf101_names(videos: int) -> tuple[list[str], list[str]]:
    """Return the names of the training set and of the test set, ``videos`` a class."""
    names = [
        [f"{action}/v_{action}_g{group:02}_c{clip + 1:02}.avi" for action in ACTIONS for clip in range(videos)]
        for group in (8, 1)
    ]
    return names[0], names[1]


def write_ucf101_lists(folder: Path, videos: int = 2, *, archive: bool = False) -> Path:
    train, test = ucf101_names(videos)
    numbered = [f"{name} {ACTIONS.index(name.partition('/')[0]) + 1}" for name in train]
    texts = {
        "classInd.txt": [f"{number + 1} {action}" for number, action in enumerate(ACTIONS)],
        "trainlist01.txt": numbered,
        "testlist01.txt": test,
    }
    contents = {f"ucfTrainTestlist/{name}": ("\r\n".join(lines) + "\r\n").encode() for name, lines in texts.items()}
    root = folder / "ucf101"
    if not archive:
        return write_files(root, contents, None).parent
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / "UCF101TrainTestSplits-RecognitionTask.zip", "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return folder


def frames_of(name: str, count: int) -> list[NDArray[np.uint8]]:
    """Return the frames of a video; they get brighter."""
    picture = photograph(ACTIONS.index(name.partition("/")[0]), int(name[-6:-4])).astype(np.int64)
    return [np.clip(picture // 2 + 100 * number // count, 0, 255).astype(np.uint8) for number in range(count)]


def write_ucf101_frames(folder: Path, videos: int = 2, *, frames: int = 12, archive: bool = False) -> Path:
    """Write ``folder/ucf101/UCF-101/CLASS/VIDEO/frame*.jpg`` and the lists."""
    write_ucf101_lists(folder, videos, archive=archive)
    for name in itertools.chain(*ucf101_names(videos)):
        place = folder / "ucf101" / "UCF-101" / name.removesuffix(".avi")
        place.mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(frames_of(name, frames)):
            (place / f"frame{number}.jpg").write_bytes(jpeg(frame))
    return folder


def write_ucf101_videos(folder: Path, videos: int = 2, *, frames: int = 12) -> Path:
    """Write ``folder/ucf101/UCF-101/CLASS/VIDEO.avi`` (needs PyAV) and the lists."""
    import av

    write_ucf101_lists(folder, videos)
    for name in itertools.chain(*ucf101_names(videos)):
        path = folder / "ucf101" / "UCF-101" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=25)
            stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 48, 40, "yuv420p", 2_000_000
            for frame in frames_of(name, frames):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode())
    return folder


#: By data set: what writes its files to a folder (``None``: it has none), and arguments with which it reads them.
DATASETS: dict[str, tuple[Callable[[Path], Path] | None, dict[str, Any]]] = {
    "breast_cancer": (None, {}),
    "cifar10": (write_cifar10, {"verify": False}),
    "cifar100": (write_cifar100, {"verify": False}),
    "diabetes": (None, {}),
    "digits": (None, {}),
    "fashion_mnist": (write_fashion_mnist, {"verify": False}),
    "imagenet": (write_imagenet_folder, {"size": 32}),
    "kmnist": (write_kmnist, {"verify": False}),
    "mnist": (write_mnist, {"verify": False}),
    "synthetic": (None, {"shape": (3, 5, 7), "samples": 50, "test_samples": 20}),
    "text": (None, {"context": 16}),
    "ucf101": (write_ucf101_frames, {"size": 32, "frames": 4}),
}


def arguments_for(name: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Write a data set's files to a folder, and return the arguments with which ``load_dataset`` reads them."""
    write, arguments = DATASETS[name]
    return {**arguments, **({} if write is None else {"folder": write(folder)}), **more}
