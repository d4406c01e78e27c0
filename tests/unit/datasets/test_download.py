from __future__ import annotations

import hashlib
import http.server
import multiprocessing
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import DatasetError
from deep500.datasets import download
from deep500.datasets.download import RemoteFile, fetch, is_offline, obtain

CONTENT = bytes(range(256)) * 400
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        getattr(self, self.path.strip("/").partition("/")[0])()

    def send(self, content: bytes, status: int = 200, sent: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content[:sent])

    def start(self) -> int:
        return int(self.headers.get("Range", "bytes=0-")[6:-1])

    def ranges(self, sent: int | None = None) -> None:
        start = self.start()
        if not start:
            self.send(CONTENT, sent=sent)
            return
        where = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        self.send(CONTENT[start:], 206, sent, Content_Range=where)

    def broken(self) -> None:
        """Break off after 30,000 bytes, each time."""
        self.ranges(30_000)

    def plain(self) -> None:
        self.send(CONTENT)

    def wrong(self) -> None:
        self.send(CONTENT[::-1])

    def longer(self) -> None:
        self.send(CONTENT + b"more")

    def missing(self) -> None:
        self.send_error(404)

    def other_part(self) -> None:
        self.send(CONTENT, 206, Content_Range=f"bytes 5-{len(CONTENT) - 1}/{len(CONTENT)}")

    def unsatisfiable(self) -> None:
        if self.start():
            self.send_error(416)
        else:
            self.send(CONTENT)

    def busy(self) -> None:
        server: Any = self.server
        if len(server.asked) < 3:
            self.send_error(503)
        else:
            self.send(CONTENT)

    def silent(self) -> None:
        threading.Event().wait(3)

    def redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/plain/data.bin")
        self.end_headers()

    def to_file(self) -> None:
        self.send_response(302)
        self.send_header("Location", "file:///etc/hostname")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEEP500_OFFLINE", "0")
    made: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked = []
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def remote(server: Any, *paths: str) -> RemoteFile:
    base = f"http://127.0.0.1:{server.server_address[1]}"
    return RemoteFile("data.bin", tuple(f"{base}/{path}/data.bin" for path in paths), DIGEST, len(CONTENT))


def partial(folder: Path) -> Path:
    return folder / ".data.bin.partial"


def test_a_file_arrives_whole_and_is_not_asked_for_again(server: Any, tmp_path: Path) -> None:
    for _ in range(2):
        path = fetch(remote(server, "plain"), tmp_path / "a" / "b")

    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["data.bin"]
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(server.asked) == 1


def test_a_broken_transfer_goes_on_where_it_stopped(server: Any, tmp_path: Path) -> None:
    path = fetch(remote(server, "broken"), tmp_path, attempts=4, pause_s=0)

    assert path.read_bytes() == CONTENT
    assert [asked[1] for asked in server.asked] == [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_what_arrived_is_kept_for_the_next_time(server: Any, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"ended after 30,000 of 102,400 bytes"):
        fetch(remote(server, "broken"), tmp_path, attempts=1)
    assert partial(tmp_path).read_bytes() == CONTENT[:30_000]
    assert not (tmp_path / "data.bin").exists()

    fetch(remote(server, "ranges"), tmp_path)

    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert server.asked[-1][1] == "bytes=30000-"


@pytest.mark.parametrize("path", ["plain", "unsatisfiable"])
def test_a_server_without_ranges_sends_all_of_it(server: Any, tmp_path: Path, path: str) -> None:
    partial(tmp_path).write_bytes(CONTENT[:1000])

    assert fetch(remote(server, path), tmp_path, pause_s=0).read_bytes() == CONTENT


def test_a_complete_partial_file_needs_no_server(tmp_path: Path) -> None:
    partial(tmp_path).write_bytes(CONTENT)

    assert fetch(RemoteFile("data.bin", ("http://127.0.0.1:9/x",), DIGEST, len(CONTENT)), tmp_path).is_file()


@pytest.mark.parametrize("kept", [b"x" * 1000, b"x" * len(CONTENT), b"x" * 200_000])
def test_wrong_bytes_that_were_kept_are_found_out(server: Any, tmp_path: Path, kept: bytes) -> None:
    partial(tmp_path).write_bytes(kept)

    assert fetch(remote(server, "ranges", "ranges"), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "message", "asked"),
    [
        ("wrong", r"SHA-256 [0-9a-f]{64} instead of the published " + DIGEST, 1),
        ("longer", r"more than the published 102,400 bytes", 1),
        ("missing", r"404", 1),
        ("other_part", r"another part", 3),
        ("to_file", r"302 .*file:///etc/hostname", 1),
        ("silent", r"timed out", 3),
    ],
)
def test_what_goes_wrong_is_said(server: Any, tmp_path: Path, path: str, message: str, asked: int) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        fetch(remote(server, path), tmp_path, timeout_s=0.3, pause_s=0)

    assert "\n" not in str(caught.value)
    assert len(server.asked) == asked
    assert not (tmp_path / "data.bin").exists()
    assert partial(tmp_path).stat().st_size == 0


def test_a_busy_server_is_asked_again_and_redirections_are_followed(server: Any, tmp_path: Path) -> None:
    assert fetch(remote(server, "busy"), tmp_path / "a", pause_s=0).read_bytes() == CONTENT
    assert fetch(remote(server, "redirect"), tmp_path / "b").read_bytes() == CONTENT


def test_the_next_address_is_tried(server: Any, tmp_path: Path) -> None:
    assert fetch(remote(server, "missing", "wrong", "plain"), tmp_path).read_bytes() == CONTENT


def test_no_network_says_address_checksum_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP500_OFFLINE", "")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/data.bin"
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)

    with pytest.raises(DatasetError, match="refused") as caught:
        obtain("TINY", RemoteFile("data.bin", (address,), DIGEST, 5), tmp_path)

    for part in ("TINY is not there", address, DIGEST, str(tmp_path), "DEEP500_DATA"):
        assert part in str(caught.value)


def test_offline_and_download_false_ask_nobody(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="turned off") as caught:
        obtain("TINY", remote(server, "plain"), tmp_path, download=False)
    assert DIGEST in str(caught.value)
    monkeypatch.setenv("DEEP500_OFFLINE", "1")
    assert is_offline()
    with pytest.raises(DatasetError, match="DEEP500_OFFLINE is set"):
        obtain("TINY", remote(server, "plain"), tmp_path)
    with pytest.raises(DatasetError, match="True and False"):
        obtain("TINY", remote(server, "plain"), tmp_path, download="yes")  # type: ignore[arg-type]
    assert server.asked == []


def _fetch_elsewhere(arguments: tuple[RemoteFile, Path]) -> bytes:
    return fetch(*arguments).read_bytes()


def test_processes_take_turns(server: Any, tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        contents = pool.map(_fetch_elsewhere, [(remote(server, "plain"), tmp_path)] * 6, chunksize=1)

    assert contents == [CONTENT] * 6
    assert len(server.asked) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_too_little_space_is_said_before(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))  # type: ignore[attr-defined]

    with pytest.raises(DatasetError, match="10 are free"):
        fetch(remote(server, "plain"), tmp_path)
    assert server.asked == []


def test_a_folder_that_cannot_be_written_is_said(server: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatasetError, match="cannot be downloaded to"):
        fetch(remote(server, "plain"), tmp_path / "file" / "folder")


def test_a_link_in_place_of_the_partial_file_is_not_followed(server: Any, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("keep")
    os.symlink(tmp_path / "victim", partial(tmp_path))

    with pytest.raises(DatasetError, match="cannot be downloaded"):
        fetch(remote(server, "plain"), tmp_path)
    assert (tmp_path / "victim").read_text() == "keep"


def test_a_bar_on_a_terminal(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(remote(server, "plain"), tmp_path / "a")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    fetch(remote(server, "plain"), tmp_path / "b")

    assert "data.bin" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("data.bin", ("file:///etc/passwd",), DIGEST, 1),
        ("data.bin", ("ftp://host/data.bin",), DIGEST, 1),
        ("data.bin", (), DIGEST, 1),
        ("../data.bin", ("https://host/data.bin",), DIGEST, 1),
        ("data.bin", ("https://host/data.bin",), "abc", 1),
    ],
)
def test_descriptions_are_checked(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(DatasetError):
        RemoteFile(*arguments)
