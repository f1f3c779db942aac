"""Generate the Python stubs of every .proto file.

Owns: the one way `contracts/gen/weir` comes about (protoc, grpc, mypy-protobuf, package markers).
Does not own: the .proto files, or what the messages mean (`contracts`). Enforces: WEIR-002 (what is
committed is what the protos give).
Run `python -m tools.generate_stubs` to write, `--check` to compare with what is committed.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import _proto, protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
STUBS = ROOT / "contracts" / "gen" / "weir"
WELL_KNOWN = Path(next(iter(_proto.__path__)))


def generate(target: Path) -> None:
    """Write the stubs of all protos below `target`, which becomes the folder above `weir`."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    # protoc finds mypy-protobuf's plugins on PATH: they stand beside this interpreter.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    status = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{WELL_KNOWN}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--mypy_out=quiet:{target}",
            f"--mypy_grpc_out=quiet:{target}",
            *sources,
        ]
    )
    if status != 0:
        raise SystemExit(status)
    folders = {path.parent for path in target.rglob("*_pb2.py")}
    for folder in {parent for leaf in folders for parent in (leaf, *leaf.parents)}:
        if target in folder.parents:
            (folder / "__init__.py").touch()
    (target / "weir" / "py.typed").touch()
    for path in target.rglob("*_pb2_grpc.py*"):
        if b"_stub" not in path.read_bytes() and b"class " not in path.read_bytes():
            path.unlink()  # a file without a service has nothing to say


def differences(left: Path, right: Path) -> list[str]:
    """Name the files below `left` and `right` that differ or stand on one side only."""
    found: list[str] = []
    names = {
        path.relative_to(side)
        for side in (left, right)
        for path in side.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name in sorted(names):
        one, other = left / name, right / name
        if not one.exists() or not other.exists() or not filecmp.cmp(one, other, shallow=False):
            found.append(str(name))
    return found


def main() -> int:
    """Write or check the stubs; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate or check the stubs of protos/.")
    parser.add_argument("--check", action="store_true", help="compare only, exit 1 on drift")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        generate(target)
        fresh = target / "weir"
        if arguments.check:  # WEIR-002: byte for byte
            drift = differences(fresh, STUBS)
            for name in drift:
                print(f"stub drift: contracts/gen/weir/{name}", file=sys.stderr)
            return 1 if drift else 0
        shutil.rmtree(STUBS, ignore_errors=True)
        shutil.copytree(fresh, STUBS)
        return 0


if __name__ == "__main__":
    sys.exit(main())
