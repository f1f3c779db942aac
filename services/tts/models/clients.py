"""Fetching one pinned package through the registry's own client.

Owns: the command lines of pip and npm, their time bound, how their failure is told. Does not own:
which registry they talk to (their configuration says), or what is inside a package (`archive`).
Enforces: WEIR-323 (a package comes through its registry's own client).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Protocol

from services.tts.models.manifest import Client, Package

PACKAGE_TIMEOUT_S = 1800.0
_MESSAGE_BYTES = 2000


class ClientError(Exception):
    """The client is missing or could not fetch the package; the message says which."""


class Fetch(Protocol):
    """Downloads one package into an empty folder and returns the archive."""

    def __call__(self, package: Package, folder: Path) -> Path:
        """Raises ClientError."""
        ...


def fetch_package(package: Package, folder: Path) -> Path:
    """Download `package` into the empty `folder` with its client; return the archive's path.

    Raises ClientError when the client is missing, fails, takes longer than PACKAGE_TIMEOUT_S or
    leaves anything but one archive. Progress of the client is shown when standard error is a tty.
    """
    _run(_command(package, folder), package, folder)
    archives = [path for path in folder.iterdir() if path.is_file()]
    if len(archives) != 1:
        raise ClientError(f"{package}: expected one archive, found {len(archives)}")
    return archives[0]


def _command(package: Package, folder: Path) -> list[str]:
    # WEIR-323: the client is told the one version of the manifest.
    if package.client is Client.PIP:
        # Wheels only: nothing of a package is ever run.
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
        pinned = f"{package.name}=={package.version}"
        return [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), pinned]
    npm = shutil.which("npm")
    if npm is None:
        raise ClientError(f"{package}: npm is not installed (Debian: apt-get install npm)")
    pinned = f"{package.name}@{package.version}"
    return [npm, "pack", pinned, "--ignore-scripts", "--pack-destination", str(folder)]


def _run(command: list[str], package: Package, folder: Path) -> None:
    with tempfile.TemporaryFile() as output:
        stream = None if sys.stderr.isatty() else output
        try:
            result = subprocess.run(
                command,
                check=False,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                timeout=PACKAGE_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise ClientError(f"{package}: not fetched within {PACKAGE_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise ClientError(f"{package}: {command[0]} cannot be run: {error}") from error
        if result.returncode != 0:
            raise ClientError(
                f"{package}: {package.client.value} ended with {result.returncode}{_tail(output)}"
            )


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, 2)
    output.seek(max(0, size - _MESSAGE_BYTES))
    text = output.read().decode(errors="replace").strip()
    return f":\n{text}" if text else ""
