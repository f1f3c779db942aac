"""Settings of the speech service, prefix `TTS_`.

Owns: what an operator can set. Does not own: reading them (`__main__`), the options of an adapter
(its own record; they travel as text). Enforces: nothing of its own; each limit is enforced where it
is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.runtime.admin import AdminSettings
from services.runtime.lifecycle import DrainSettings
from services.runtime.logging import LogSettings
from services.runtime.settings import group, setting
from services.runtime.transport import ServerSettings
from services.tts.adapters.settings import AdapterSettings, parse_option_list


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Bounds of synthesis."""

    queue: int = setting(
        "TTS_QUEUE_REQUESTS",
        64,
        "Accepted segments that may wait for a slot; further ones are refused as OVERLOADED.",
        minimum=0,
        maximum=100_000,
    )
    retry_delay_min_ms: int = setting(
        "TTS_RETRY_DELAY_MIN_MS",
        100,
        "Least delay that a refused caller is told to wait.",
        unit="ms",
        minimum=1,
    )
    retry_delay_max_ms: int = setting(
        "TTS_RETRY_DELAY_MAX_MS",
        5_000,
        "Greatest delay that a refused caller is told to wait.",
        unit="ms",
        minimum=1,
    )
    max_text_characters: int = setting(
        "TTS_MAX_TEXT_CHARACTERS",
        131_072,
        "Greatest count of code points in one segment; the adapter's own limit applies as well.",
        unit="code points",
        minimum=1,
    )
    max_audio_s: float = setting(
        "TTS_MAX_AUDIO_S",
        1_800.0,
        "Greatest duration of one segment; a model that speaks on fails the segment. A file "
        "encoding holds the whole segment in memory.",
        unit="s",
        minimum=1,
    )
    chunk_ms: int = setting(
        "TTS_CHUNK_MS",
        100,
        "Greatest duration of one chunk of raw audio. A shorter step of the model leaves at once.",
        unit="ms",
        minimum=1,
        maximum=600,
    )
    handover_chunks: int = setting(
        "TTS_HANDOVER_CHUNKS",
        4,
        "Chunks that may wait between the model's thread and the network; with a reader that "
        "stalls the model stops after these and the connection's window.",
        minimum=1,
        maximum=1000,
    )

    def __post_init__(self) -> None:
        if self.retry_delay_min_ms > self.retry_delay_max_ms:
            raise ValueError("TTS_RETRY_DELAY_MIN_MS: is above TTS_RETRY_DELAY_MAX_MS")


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How long one call may take."""

    max_call_s: float = setting(
        "TTS_MAX_CALL_S",
        3_600.0,
        "Greatest duration of one call, waiting included; beyond it the segment is given up.",
        unit="s",
        minimum=0.1,
    )
    send_stall_s: float = setting(
        "TTS_SEND_STALL_S",
        60.0,
        "Time that a reader may take for one message before the segment is given up. Longer than "
        "the edge lets its own readers stall.",
        unit="s",
        minimum=0.1,
    )


@dataclass(frozen=True, slots=True)
class TtsSettings:
    """All settings of one process of the speech service; its own say which model speaks."""

    adapter: str = setting(
        "TTS_ADAPTER",
        "embedded",
        "Voice adapter: a registered name, or package.module:Class.",
    )
    options: str = setting(
        "TTS_ADAPTER_OPTIONS", "", "Options of the adapter as name=value, separated by commas."
    )
    model_dir: str = setting("TTS_MODEL_DIR", ".models", "Folder of downloaded model files.")
    model_name: str = setting(
        "TTS_MODEL_NAME", "", "Name under which the model is served; unset: the adapter's own."
    )
    slots: int | None = setting(
        "TTS_SLOTS",
        None,
        "Segments spoken at once; unset: what the adapter finds best.",
        minimum=1,
        maximum=1024,
    )
    engine: EngineSettings = group(EngineSettings)
    call: CallSettings = group(CallSettings)
    server: ServerSettings = group(ServerSettings)
    admin: AdminSettings = group(AdminSettings)
    drain: DrainSettings = group(DrainSettings)
    log: LogSettings = group(LogSettings)

    def __post_init__(self) -> None:
        try:
            parse_option_list(self.options)
        except ValueError as error:
            raise ValueError(f"TTS_ADAPTER_OPTIONS: {error}") from None

    @property
    def for_adapter(self) -> AdapterSettings:
        """What the adapter's constructor takes."""
        return AdapterSettings(Path(self.model_dir), self.slots, parse_option_list(self.options))
