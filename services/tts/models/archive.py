"""Taking one named file out of a downloaded archive.

Owns: finding a member of a wheel or tarball, and copying it out under a bound while it is hashed.
Does not own: where files are kept (`store`). Enforces: WEIR-321 (nothing is written but the file
that was asked for, to the place that was given: an archive cannot name a path).
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

_BLOCK = 1 << 20
_UNREADABLE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError)


class ArchiveError(Exception):
    """The archive is not what the manifest says; the message says how."""


def extract(archive: Path, member: str, size_bytes: int, sha256: str, target: Path) -> None:
    """Copy `member` of `archive` to `target` when its size and hash are the expected ones.

    Raises ArchiveError otherwise; `target` then does not exist.
    """
    with ExitStack() as resources:
        source = _open(archive, member, resources)
        write_checked(_guarded(source, archive.name), size_bytes, sha256, target)


def write_checked(read: Callable[[int], bytes], size_bytes: int, sha256: str, target: Path) -> None:
    """Write what `read(n)` gives to `target`: a temporary file, checked, flushed, then renamed.

    Raises ArchiveError when the size or the hash differs; `target` is then untouched.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    written = 0
    try:
        with partial.open("wb") as sink:
            # One byte past the expected size is enough to know, so a bomb is never unpacked.
            while block := read(min(_BLOCK, size_bytes + 1 - written)):
                written += len(block)
                digest.update(block)
                sink.write(block)
            sink.flush()
            os.fsync(sink.fileno())
        if written != size_bytes or digest.hexdigest() != sha256:
            # WEIR-320: a file that is not the pinned one never gets its name.
            raise ArchiveError(f"{target.name} is not the pinned file (size or sha256 differs)")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _open(archive: Path, member: str, resources: ExitStack) -> IO[bytes]:
    # WEIR-321: the member is looked up by its exact name; no name from the archive is a path here.
    try:
        if zipfile.is_zipfile(archive):
            opened_zip = resources.enter_context(zipfile.ZipFile(archive))
            return resources.enter_context(opened_zip.open(member))
        opened_tar = tarfile.open(archive)  # noqa: SIM115  the stack closes it
        resources.enter_context(opened_tar)
        info = opened_tar.getmember(member)
        regular = opened_tar.extractfile(info) if info.isreg() else None
    except KeyError:
        raise ArchiveError(f"{archive.name} has no {member}") from None
    except _UNREADABLE as error:
        raise ArchiveError(f"{archive.name} cannot be read: {type(error).__name__}") from error
    if regular is None:
        raise ArchiveError(f"{member} in {archive.name} is not a plain file")
    return resources.enter_context(regular)


def _guarded(source: IO[bytes], name: str) -> Callable[[int], bytes]:
    """Return a `read` whose failures are the archive's; those of writing stay what they are."""

    def read(count: int) -> bytes:
        try:
            return source.read(count)
        except _UNREADABLE as error:
            raise ArchiveError(f"{name} cannot be read: {type(error).__name__}") from error

    return read
