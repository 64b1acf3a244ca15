"""Download files from several mirrors; keep only complete, verified ones."""

import hashlib
import http.client
import sys
from collections import namedtuple
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import uuid4

CHUNK = 1 << 16
TIMEOUT = 20  # seconds without a byte
#: A file's name, its size in bytes, its SHA-256 in hex.
OfficialFile = namedtuple("OfficialFile", "name size sha256")


class _MirrorError(Exception):
    """Why one mirror did not deliver."""


def fetch(files, mirrors, folder, timeout=TIMEOUT):
    """Make sure that `folder` holds the `files`, verified.

    `files`: a list of `OfficialFile`. `mirrors`: addresses that end in a slash, to
    which file names are appended; they are tried in turn. `timeout`: seconds without a
    byte after which a mirror is abandoned, default 20.

    Existing files are verified and not downloaded again. A download goes to a temporary
    file in the same folder, which is renamed once its size and SHA-256 match. Two
    processes may do this at the same time. Raises `ValueError` if an existing file
    differs (it stays as it is), and `ConnectionError`, with a line per mirror, if no
    mirror delivers a file. No partial file stays behind.
    """
    folder, mirrors = Path(folder), list(mirrors)
    missing = _missing(files, folder)
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
    for file in missing:
        reasons = []
        for mirror in mirrors:
            try:
                _download(mirror + file.name, file, folder, timeout)
                break
            except _MirrorError as error:
                reasons.append(f"  {mirror}: {error}\n")
        else:
            names = ", ".join(file.name for file in files)
            raise ConnectionError(
                f"no mirror delivered {file.name}:\n{''.join(reasons)}"
                f"To go on without a network, put the official {names} into {folder}"
            )
        # The next file starts with the mirror that works.
        mirrors.sort(key=lambda other: other != mirror)


def _missing(files, folder):
    """Return the `files` that `folder` lacks. Raises `ValueError` if one differs."""
    missing = []
    for file in files:
        path = folder / file.name
        if not path.exists():
            missing.append(file)
        elif difference := _difference(path, file):
            raise ValueError(
                f"{path} is not the official file: {difference}. Delete it to have it "
                "downloaded again. To use another version, keep it in a folder of its "
                "own and name that folder (root=… or D2L_EXT_DATA_DIR)."
            )
    return missing


def _difference(path, file):
    """Return how `path` differs from `file`, or None; read only if the size matches."""
    size = path.stat().st_size
    if not path.is_file():
        return "it is not a regular file"
    if size != file.size:
        return f"expected {file.size:,} bytes, found {size:,}"
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != file.sha256:
        return f"expected SHA-256 {file.sha256}, found {digest.hexdigest()}"
    return None


def _download(url, file, folder, timeout):
    """Download `file` into `folder`, or raise `_MirrorError`."""
    part, received = folder / f".{file.name}.{uuid4().hex}.part", 0
    try:
        with part.open("wb") as out:
            for chunk in _chunks(url, timeout):
                received += out.write(chunk)
                if received > file.size:
                    break
                _tell(file, urlsplit(url).netloc, received, len(chunk))
        if difference := _difference(part, file):
            raise _MirrorError(difference)
        part.replace(folder / file.name)
    finally:
        part.unlink(missing_ok=True)
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the bar's line ends


def _chunks(url, timeout):
    """Yield the bytes of `url`. Only network errors become a `_MirrorError`."""
    try:
        with urlopen(url, timeout=timeout) as response:
            while chunk := response.read(CHUNK):
                yield chunk
    except HTTPError as error:
        raise _MirrorError(f"HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if "timed out" in str(reason):
            reason = f"timed out, no byte for {timeout} s"
        raise _MirrorError(str(reason) or type(reason).__name__) from None


def _tell(file, host, received, new):
    """Show progress on standard error: a bar on a terminal, else a line per file."""
    if sys.stderr.isatty():
        line = f"\r{file.name} {progress_bar(received / file.size)} {host}"
        print(line, end="", file=sys.stderr, flush=True)
    elif received == new:  # the first bytes
        print(f"{file.name}: {file.size / 1e6:.2f} MB from {host}", file=sys.stderr)


def progress_bar(share, width=30):
    """Return a bar of `width` characters and a percentage; `share`: 0 to 1."""
    return f"[{('#' * round(share * width)).ljust(width, '.')}] {share:4.0%}"
