"""A download is whole and right, or it is not there."""

import errno
import gzip
import hashlib
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from d2l_ext.data import download
from d2l_ext.data.download import OfficialFile, fetch

CONTENT = {f"{c}.gz": gzip.compress(bytes([ord(c)]) * 99) for c in "abcd"}
CONTENT["large.gz"] = bytes(range(256)) * 1024  # four chunks
PAGE = b"<!DOCTYPE html><title>Sign in here</title>" * 1600  # a chunk and more


def official(name):
    data = CONTENT[name]
    return OfficialFile(name, len(data), hashlib.sha256(data).hexdigest())


FILES = [official(name) for name in sorted(CONTENT)]


class Mirror(BaseHTTPRequestHandler):
    """Serves CONTENT in the way that the first part of the path names."""

    def do_GET(self):
        _, way, name = self.path.split("/")
        self.server.requests.append((way, name))
        data = CONTENT[name]
        if way == "absent":
            return self.send_error(404)
        if way == "broken":
            return self.send_error(503)
        if way in ("redirected", "astray"):
            self.send_response(302)
            to = f"/good/{name}" if way == "redirected" else "http://[nowhere/"
            self.send_header("Location", to)
            return self.end_headers()
        changed = data[:5] + bytes([data[5] ^ 1]) + data[6:]
        body = {"corrupt": changed, "page": PAGE, "longer": data + b"\0"}.get(way, data)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if way in ("truncated", "stalled"):
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.wfile.flush()
        if way == "stalled":
            self.server.released.wait(300)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.daemon_threads, server.block_on_close = True, False
    server.requests, server.released = [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def mirror(server, monkeypatch):
    """From a way of serving to the address of such a mirror."""
    monkeypatch.setenv("no_proxy", "*")
    server.requests.clear()
    return lambda way: f"http://127.0.0.1:{server.server_address[1]}/{way}/"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def failure(mirrors, folder, timeout=60):
    with pytest.raises(ConnectionError) as caught:
        fetch(FILES, mirrors, folder, timeout=timeout)
    assert caught.value.__context__ is None
    return str(caught.value)


BAD = {
    "absent": "HTTP 404 Not Found",
    "broken": "HTTP 503 Service Unavailable",
    "corrupt": f"expected SHA-256 {FILES[0].sha256}, found ",
    "truncated": f"expected {FILES[0].size} bytes, found {FILES[0].size // 2}",
    "page": f"expected {FILES[0].size} bytes, found 65,536",
    "longer": f"expected {FILES[0].size} bytes, found {FILES[0].size + 1}",
    "astray": "Invalid IPv6 URL",
    "stalled": "timed out, no byte for 1 s",
}


def test_a_mirror_that_redirects_gives_the_files_and_nothing_else(mirror, tmp_path):
    fetch(FILES, [mirror("redirected")], tmp_path / "new" / "folder")
    assert contents(tmp_path / "new" / "folder") == CONTENT


@pytest.mark.parametrize("way", BAD)
def test_a_bad_mirror_is_passed_over_and_what_it_sent_is_not_left_behind(
    mirror, tmp_path, way
):
    timeout = 1 if way == "stalled" else 60
    message = failure([mirror(way)], tmp_path, timeout)
    assert f"no mirror delivered {FILES[0].name}" in message
    assert f"{mirror(way)}: {BAD[way]}" in message
    assert contents(tmp_path) == {}
    fetch(FILES, [mirror(way), mirror("good")], tmp_path, timeout=timeout)
    assert contents(tmp_path) == CONTENT


def test_files_that_did_arrive_are_kept(mirror, tmp_path, monkeypatch):
    last = FILES[-1]._replace(sha256="0" * 64)
    with pytest.raises(ConnectionError, match=last.name):
        fetch([*FILES[:-1], last], [mirror("good")], tmp_path)
    assert set(contents(tmp_path)) == set(CONTENT) - {last.name}


def test_when_all_fail_the_message_has_a_line_per_mirror_and_says_how_to_go_on(
    mirror, tmp_path
):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    folder = tmp_path / "here"
    lines = failure([mirror("absent"), mirror("corrupt"), nobody], folder).splitlines()
    assert len(lines) == 5
    assert mirror("absent") in lines[1] and "404" in lines[1]
    assert mirror("corrupt") in lines[2] and FILES[0].sha256 in lines[2]
    assert nobody in lines[3] and "refused" in lines[3]
    assert all(file.name in lines[4] for file in FILES)
    assert str(folder) in lines[4] and contents(folder) == {}


def test_the_mirror_that_worked_is_asked_first_for_the_next_file(
    server, mirror, tmp_path
):
    fetch(FILES, [mirror("absent"), mirror("good")], tmp_path)
    assert [way for way, _ in server.requests] == ["absent"] + ["good"] * len(FILES)


def test_what_is_there_and_right_is_not_asked_for_again(server, mirror, tmp_path):
    (tmp_path / "a.gz").write_bytes(CONTENT["a.gz"])
    fetch(FILES, [mirror("good")], tmp_path)
    assert ("good", "a.gz") not in server.requests
    server.requests.clear()
    fetch(FILES, [mirror("good")], tmp_path)
    assert server.requests == []


def test_another_file_under_that_name_is_refused_and_left_alone(
    server, mirror, tmp_path
):
    mine, content = tmp_path / "b.gz", bytes(FILES[1].size)
    mine.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        fetch(FILES, [mirror("good")], tmp_path)
    message = str(caught.value)
    assert str(mine) in message
    assert hashlib.sha256(content).hexdigest() in message
    assert official("b.gz").sha256 in message
    assert "Delete it" in message and "D2L_EXT_DATA_DIR" in message
    assert mine.read_bytes() == content
    assert server.requests == []


def test_a_file_of_another_size_is_refused_without_reading_it(tmp_path, monkeypatch):
    with (tmp_path / "b.gz").open("wb") as sparse:
        sparse.truncate(5_000_000_000)
    monkeypatch.setattr(download, "hashlib", None)
    expected = f"expected {FILES[1].size} bytes, found 5,000,000,000. Delete it"
    with pytest.raises(ValueError, match=expected):
        fetch([FILES[1]], ["http://127.0.0.1:9/"], tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path, make):
    make(tmp_path / "b.gz")
    with pytest.raises(ValueError, match="it is not a regular file. Delete it"):
        fetch([FILES[1]], ["http://127.0.0.1:9/"], tmp_path)


def test_an_interrupt_leaves_nothing_partial(tmp_path, monkeypatch):
    def interrupted(url, timeout):
        yield CONTENT["a.gz"][:9]
        assert len(contents(tmp_path)) == 1  # the temporary file
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(FILES, ["http://127.0.0.1:9/"], tmp_path)
    assert contents(tmp_path) == {}


def test_a_full_disk_is_not_blamed_on_the_mirrors(mirror, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        fetch(FILES, [mirror("good")], tmp_path)
    assert not isinstance(caught.value, ConnectionError)
    assert contents(tmp_path) == {}


def test_downloads_side_by_side_do_not_disturb_each_other(mirror, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fetch, FILES, [mirror("good")], tmp_path) for _ in range(4)]
    assert [job.result() for job in jobs] == [None] * 4
    assert contents(tmp_path) == CONTENT


def test_without_a_terminal_there_is_one_plain_line_per_file(mirror, tmp_path, capsys):
    fetch(FILES, [mirror("good")], tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(FILES)
    assert lines[-1].startswith("large.gz: 0.26 MB from 127.0.0.1:")


def test_on_a_terminal_a_bar_grows_to_its_end(mirror, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fetch([official("large.gz")], [mirror("good")], tmp_path)
    steps = capsys.readouterr().err.split("\r")[1:]
    assert len(steps) >= 4
    fill = [step.count("#") for step in steps]
    assert fill == sorted(fill) and fill[0] < fill[-1] == 30
    assert "100%" in steps[-1] and steps[-1].endswith("\n")
