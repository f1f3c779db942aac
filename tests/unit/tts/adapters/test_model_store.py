"""The model folder: only pinned bytes, nothing twice, nothing outside, clear words on failure."""

from __future__ import annotations

import fcntl
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from services.tts.models.__main__ import main
from services.tts.models.archive import ArchiveError, extract
from services.tts.models.clients import ClientError, fetch_package
from services.tts.models.manifest import (
    ASSETS,
    DEFAULT_GROUPS,
    KOKORO_VOICES,
    WITHOUT,
    Asset,
    Client,
    Group,
    Package,
    Part,
    assets_of,
)
from services.tts.models.store import ModelStore, StoreError

ONE = Package(Client.PIP, "one", "1.0", 100)
TWO = Package(Client.NPM, "two", "2.0", 100)
LEFT, RIGHT = b"left half, ", b"right half"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part(package: Package, member: str, data: bytes) -> Part:
    return Part(package, member, len(data), digest(data))


WHOLE = LEFT + RIGHT
JOINED = Asset(
    "model/whole.bin",
    Group.KOKORO,
    len(WHOLE),
    digest(WHOLE),
    (part(ONE, "one/left.bin", LEFT), part(TWO, "package/right.bin", RIGHT)),
)
SINGLE = Asset(
    "vocab.json", Group.KOKORO, 2, digest(b"{}"), (part(ONE, "one/data/vocab.json", b"{}"),)
)
ASSETS_HERE = (JOINED, SINGLE)


class Registry:
    """Stands for pip and npm: archives of known content, and a count of what was asked for."""

    def __init__(self) -> None:
        self.files = {
            "one": {"one/left.bin": LEFT, "one/data/vocab.json": b"{}"},
            "two": {"package/right.bin": RIGHT},
        }
        self.asked: list[str] = []
        self.down: set[str] = set()

    def __call__(self, package: Package, folder: Path) -> Path:
        self.asked.append(package.name)
        assert list(folder.iterdir()) == []
        if package.name in self.down:
            raise ClientError(f"{package}: the registry is down")
        members = self.files[package.name]
        return (zipped if package.client is Client.PIP else tarred)(folder / "archive", members)


class Heard:
    """A report that remembers."""

    def __init__(self) -> None:
        self.ready: list[str] = []
        self.problems: list[str] = []

    def package_started(self, package: Package) -> None:
        pass

    def file_ready(self, asset: Asset, bytes_per_s: float) -> None:
        self.ready.append(asset.path)

    def failed(self, subject: str, problem: str) -> None:
        self.problems.append(f"{subject}: {problem}")


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def store(tmp_path: Path, registry: Registry) -> ModelStore:
    return ModelStore(tmp_path / "models", registry)


def test_files_are_joined_checked_and_left_alone_afterwards(
    store: ModelStore, registry: Registry
) -> None:
    """WEIR-322: a complete folder asks no registry for anything."""
    heard = Heard()
    assert store.fetch(ASSETS_HERE, heard) == ()
    assert store.path(JOINED).read_bytes() == WHOLE
    assert store.path(SINGLE).read_bytes() == b"{}"
    assert sorted(heard.ready) == ["model/whole.bin", "vocab.json"]
    assert store.fetch(ASSETS_HERE, heard) == ()
    assert registry.asked == ["one", "two"]
    assert not (store.folder / ".partial").exists()


def test_a_broken_run_goes_on_where_it_stopped(store: ModelStore, registry: Registry) -> None:
    """WEIR-322: parts that were checked are kept and not fetched again."""
    registry.down = {"two"}
    heard = Heard()
    assert store.fetch(ASSETS_HERE, heard) == (JOINED,)
    assert heard.ready == ["vocab.json"]
    assert heard.problems == ["two 2.0: two 2.0: the registry is down"]
    registry.down = set()
    assert store.fetch(ASSETS_HERE, heard) == ()
    assert registry.asked == ["one", "two", "two"]
    assert store.path(JOINED).read_bytes() == WHOLE


def test_an_interrupt_leaves_what_was_checked_and_nothing_half_written(
    store: ModelStore, registry: Registry
) -> None:
    """WEIR-322: also when the run ends in the middle of a download."""

    def interrupted(package: Package, folder: Path) -> Path:
        if package is TWO:
            (folder / "half").write_bytes(b"abc")
            raise KeyboardInterrupt
        return registry(package, folder)

    broken = ModelStore(store.folder, interrupted)
    with pytest.raises(KeyboardInterrupt):
        broken.fetch(ASSETS_HERE, Heard())
    names = {path.name for path in store.folder.rglob("*") if path.is_file()}
    assert names == {".lock", "vocab.json", digest(LEFT)}
    assert store.fetch(ASSETS_HERE, Heard()) == ()
    assert registry.asked == ["one", "two"]


@pytest.mark.parametrize("bad", [b"LEFT HALF, ", b"left", LEFT + b"and more"])
def test_bytes_that_are_not_the_pinned_ones_never_get_the_files_name(
    store: ModelStore, registry: Registry, bad: bytes
) -> None:
    """WEIR-320: another hash, a short file, a long file."""
    registry.files["one"]["one/left.bin"] = bad
    heard = Heard()
    assert JOINED in store.fetch(ASSETS_HERE, heard)
    assert not store.path(JOINED).exists()
    assert "not the pinned file" in heard.problems[0]
    assert not list(store.folder.rglob("*.tmp"))


def test_a_file_that_went_bad_is_found_and_replaced(store: ModelStore, registry: Registry) -> None:
    """WEIR-320: same size, other bytes: only the hash tells."""
    store.fetch(ASSETS_HERE, Heard())
    store.path(JOINED).write_bytes(WHOLE[::-1])
    assert store.missing(ASSETS_HERE) == ()
    assert store.corrupt(ASSETS_HERE) == (JOINED,)
    assert store.fetch(ASSETS_HERE, Heard()) == ()
    assert store.corrupt(ASSETS_HERE) == ()
    assert store.path(JOINED).read_bytes() == WHOLE


@pytest.mark.parametrize("make", [zipped, tarred])
def test_an_archive_writes_nothing_but_what_was_asked_for(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    """WEIR-321: hostile names in an archive are never paths."""
    members = {"../escaped": b"x", "/absolute": b"x", "good": b"fine"}
    archive = make(tmp_path / "archive", members)
    folder = tmp_path / "out"
    extract(archive, "good", 4, digest(b"fine"), folder / "file")
    extract(archive, "../escaped", 1, digest(b"x"), folder / "other")
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {"archive", "file", "other"}
    assert not Path("/absolute").exists()


def test_an_archive_that_is_no_archive_or_lacks_the_file_is_refused(tmp_path: Path) -> None:
    """WEIR-321: each fault is told as the archive's."""
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"no archive at all")
    linked = tmp_path / "linked"
    with tarfile.open(linked, "w") as archive:
        info = tarfile.TarInfo("member")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    empty = zipped(tmp_path / "empty", {})
    for path, told in ((rubbish, "cannot be read"), (linked, "plain file"), (empty, "has no")):
        with pytest.raises(ArchiveError, match=told):
            extract(path, "member", 1, digest(b"x"), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """WEIR-321: reading stops one byte after the pinned size."""
    archive = tmp_path / "bomb"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("member", bytes(50_000_000))
    with pytest.raises(ArchiveError, match="not the pinned file"):
        extract(archive, "member", 10, digest(bytes(10)), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_second_fetch_at_the_same_time_is_refused(store: ModelStore) -> None:
    """WEIR-322: two processes never write one folder."""
    store.folder.mkdir(parents=True)
    with (store.folder / ".lock").open("w") as lock:
        # Even a shared lock of somebody else is enough: a fetch wants the folder for itself.
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(StoreError, match="another fetch"):
            store.fetch(ASSETS_HERE, Heard())
    assert store.fetch(ASSETS_HERE, Heard()) == ()


def test_too_little_room_is_told_before_anything_is_fetched(
    store: ModelStore, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEIR-322: not after minutes of download."""
    usage = shutil.disk_usage(Path.cwd())._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match="free"):
        store.fetch(ASSETS_HERE, Heard())
    assert registry.asked == []


def test_a_folder_that_cannot_be_is_told(tmp_path: Path, registry: Registry) -> None:
    """WEIR-322: a file stands where the folder should be."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot write below"):
        ModelStore(tmp_path / "file", registry).fetch(ASSETS_HERE, Heard())


def test_pip_fetches_a_pinned_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-320: the real client, against a folder of wheels in place of a registry."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    info = "one-1.0.dist-info"
    zipped(
        wheels / "one-1.0-py3-none-any.whl",
        {
            "one/left.bin": LEFT,
            f"{info}/METADATA": b"Metadata-Version: 2.1\nName: one\nVersion: 1.0\n",
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": b"",
        },
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    target = tmp_path / "target"
    target.mkdir()
    archive = fetch_package(ONE, target)
    extract(archive, "one/left.bin", len(LEFT), digest(LEFT), tmp_path / "left")
    with pytest.raises(ClientError, match=r"(?s)one 9\.9: pip ended with 1.*one==9\.9"):
        fetch_package(Package(Client.PIP, "one", "9.9", 1), target)


def test_without_npm_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEIR-323: a missing client is a sentence, not a trace."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClientError, match="npm is not installed"):
        fetch_package(TWO, tmp_path)


def test_the_command_says_what_is_missing_and_what_then_does_not_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """WEIR-323: exit code 1, the files by name, the consequence."""
    assert main(["status", "--model-dir", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "kokoro: 0 of 2 files" in told.out
    assert "missing: kokoro/voices/zf_xiaobei.bin" in told.err
    assert WITHOUT[Group.VOICES] in told.err
    assert WITHOUT[Group.TEST] not in told.err


def test_verify_reads_the_files_and_status_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """WEIR-320: a file of the right size with the wrong bytes is corrupt."""
    for asset in assets_of((Group.VOICES,)):
        path = tmp_path / asset.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(asset.size_bytes))
    assert main(["status", "voices", "--model-dir", str(tmp_path)]) == 0
    assert main(["verify", "voices", "--model-dir", str(tmp_path)]) == 1
    assert "corrupt: kokoro/voices/zf_xiaobei.bin" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["drop"], ["fetch", "nope"], ["fetch", "--nope"]])
def test_wrong_arguments_are_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """WEIR-323: and the usage is shown."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_every_file_is_pinned_once_and_by_whole_hashes() -> None:
    """WEIR-320: sizes add up, paths stay inside the folder, nothing is named twice."""
    assert len({asset.path for asset in ASSETS}) == len(ASSETS)
    for asset in ASSETS:
        assert not Path(asset.path).is_absolute()
        assert ".." not in Path(asset.path).parts
        assert asset.size_bytes == sum(p.size_bytes for p in asset.parts)
        hashes = [asset.sha256, *(p.sha256 for p in asset.parts)]
        assert {len(bytes.fromhex(sha256)) for sha256 in hashes} == {32}
    assert {name[:2] for name in KOKORO_VOICES} == {"af", "am", "zf", "zm"}
    assert set(assets_of(DEFAULT_GROUPS)).isdisjoint(assets_of((Group.TEST,)))
