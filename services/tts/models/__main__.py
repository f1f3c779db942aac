"""The command line of the model folder: `python -m services.tts.models fetch|status|verify`.

Owns: arguments, what is printed, exit codes. Does not own: the files (`store`).

Exit codes: 0 everything asked for is there and good; 1 something is missing, corrupt or not to be
had; 2 wrong arguments; 130 interrupted (what was checked is kept, so run it again).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from services.tts.models.manifest import (
    DEFAULT_GROUPS,
    MIB,
    WITHOUT,
    Asset,
    Group,
    Package,
    assets_of,
)
from services.tts.models.store import ModelStore, StoreError


class PrintedReport:
    """Prints a line for each package and file."""

    def package_started(self, package: Package) -> None:
        """Say what is downloaded now, and about how much it is."""
        megabytes = package.archive_bytes / MIB
        print(f"{package.client.value}: {package}, about {megabytes:.1f} MiB ...", flush=True)

    def file_ready(self, asset: Asset, bytes_per_s: float) -> None:
        """Say what is there now and how fast it came; no rate when its parts were here already."""
        rate = f"  {bytes_per_s / MIB:.1f} MiB/s" if bytes_per_s else ""
        print(f"  {asset.path}  {asset.size_bytes / 1024:,.0f} KiB{rate}", flush=True)

    def failed(self, subject: str, problem: str) -> None:
        """Say what went wrong."""
        print(f"failed: {subject}: {problem}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    options = _parser().parse_args(arguments)
    groups = tuple(options.groups) or DEFAULT_GROUPS
    store = ModelStore(options.model_dir)
    try:
        if options.command == "fetch":
            store.fetch(assets_of(groups), PrintedReport())
        elif options.command == "verify":
            return _verify(store, groups)
        return _status(store, groups)
    except StoreError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run it again to go on from here", file=sys.stderr)
        return 130


def _status(store: ModelStore, groups: Sequence[Group]) -> int:
    incomplete = 0
    for group in groups:
        assets = assets_of((group,))
        missing = store.missing(assets)
        there = len(assets) - len(missing)
        size = sum(asset.size_bytes for asset in assets) / MIB
        print(f"{group.value}: {there} of {len(assets)} files, {size:.1f} MiB in all")
        if missing:
            incomplete += 1
            for asset in missing:
                print(f"  missing: {asset.path}", file=sys.stderr)
            print(f"  without them {WITHOUT[group]}", file=sys.stderr)
    return 1 if incomplete else 0


def _verify(store: ModelStore, groups: Sequence[Group]) -> int:
    corrupt = store.corrupt(assets_of(tuple(groups)))
    for asset in corrupt:
        print(f"corrupt: {asset.path}; run fetch to replace it", file=sys.stderr)
    return max(_status(store, groups), 1 if corrupt else 0)


def _group(name: str) -> Group:
    try:
        return Group(name)
    except ValueError:
        known = ", ".join(group.value for group in Group)
        raise argparse.ArgumentTypeError(f"no group {name!r}; there are {known}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m services.tts.models", description="Model files of the embedded voices."
    )
    parser.add_argument("command", choices=("fetch", "status", "verify"))
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="group",
        type=_group,
        help=f"{', '.join(g.value for g in Group)}; the default is kokoro and voices",
    )
    parser.add_argument(
        "--model-dir",
        type=Path,
        default=Path(os.environ.get("TTS_MODEL_DIR") or ".models"),
        help="folder of the files; default: TTS_MODEL_DIR or .models",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
