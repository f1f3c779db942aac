"""Settings of the video service, prefix `VIDEO_`.

Owns: what an operator can set. Does not own: reading them (`__main__`), the options of an adapter
(its own record; they travel as text). Enforces: nothing of its own; each limit is enforced where it
is used.
"""

# setting() and group() declare fields; they hold no value to share

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contracts.video import VideoCodec
from services.runtime.adapter_options import parse_option_list
from services.runtime.admin import AdminSettings
from services.runtime.lifecycle import DrainSettings
from services.runtime.logging import LogSettings
from services.runtime.settings import group, setting
from services.runtime.transport import ServerSettings
from services.video.adapters.settings import AdapterSettings
from services.video.media.formats import EncoderSettings

_CODECS = tuple(codec.value for codec in VideoCodec)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Bounds of generation."""

    max_sessions: int = setting(
        "VIDEO_MAX_SESSIONS",
        2,
        "Generations at once; they take turns chunk by chunk. Further ones are refused as "
        "OVERLOADED.",
        minimum=1,
        maximum=1024,
    )
    retry_delay_ms: int = setting(
        "VIDEO_RETRY_DELAY_MS",
        1_000,
        "Delay that a refused caller is told to wait.",
        unit="ms",
        minimum=1,
    )
    waiting_interactions: int = setting(
        "VIDEO_WAITING_INTERACTIONS",
        64,
        "Interactions of one generation that may wait for encoding; further ones are refused.",
        minimum=1,
        maximum=10_000,
    )
    unsent_chunks: int = setting(
        "VIDEO_UNSENT_CHUNKS",
        2,
        "Chunks that may wait for the network, whatever credits there are; then the generation "
        "waits.",
        minimum=1,
        maximum=100,
    )
    max_pixels: int = setting(
        "VIDEO_MAX_PIXELS",
        1280 * 720,
        "Greatest width times height of a video.",
        unit="pixels",
        minimum=256,
    )
    max_image_pixels: int = setting(
        "VIDEO_MAX_IMAGE_PIXELS",
        16_000_000,
        "Greatest width times height of an image reference.",
        unit="pixels",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class EncodingSettings:
    """What the operator lets the encoder cost; no client reaches it."""

    codecs: tuple[str, ...] = setting(
        "VIDEO_CODECS", _CODECS, "Codecs on offer, most preferred first.", choices=_CODECS
    )
    h264_crf: int = setting(
        "VIDEO_H264_CRF",
        23,
        "Quality of H.264; less is better and larger. 0 would be lossless, which no browser plays.",
        minimum=1,
        maximum=51,
    )
    vp9_min_quantizer: int = setting(
        "VIDEO_VP9_MIN_QUANTIZER",
        20,
        "Bound of the quality of VP9; less is better and larger.",
        minimum=0,
        maximum=62,
    )
    av1_min_quantizer: int = setting(
        "VIDEO_AV1_MIN_QUANTIZER",
        26,
        "Bound of the quality of AV1; less is better and larger.",
        minimum=1,
        maximum=62,
    )
    max_kbit_per_s: int = setting(
        "VIDEO_MAX_KBIT_PER_S",
        12_000,
        "Greatest rate of one video over a second, whatever the quality.",
        unit="kbit/s",
        minimum=100,
        maximum=100_000,
    )
    threads: int = setting(
        "VIDEO_ENCODER_THREADS",
        1,
        "Threads of the encoder of one video.",
        minimum=1,
        maximum=16,
    )

    def __post_init__(self) -> None:
        if not self.codecs:
            raise ValueError("VIDEO_CODECS: names at least one codec")

    @property
    def for_encoder(self) -> EncoderSettings:
        """What the encoder is told."""
        return EncoderSettings(
            h264_crf=self.h264_crf,
            vp9_min_quantizer=self.vp9_min_quantizer,
            av1_min_quantizer=self.av1_min_quantizer,
            max_kbit_per_s=self.max_kbit_per_s,
            threads=self.threads,
        )


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How long one call may take."""

    max_call_s: float = setting(
        "VIDEO_MAX_CALL_S",
        3_600.0,
        "Greatest duration of one generation; beyond it the generation fails. Longer than the edge "
        "lets a session last.",
        unit="s",
        minimum=0.1,
    )
    config_s: float = setting(
        "VIDEO_CONFIG_S",
        10.0,
        "Time in which a call must send its config.",
        unit="s",
        minimum=0.1,
    )
    send_stall_s: float = setting(
        "VIDEO_SEND_STALL_S",
        60.0,
        "Time that a reader may take for one message before the generation is given up.",
        unit="s",
        minimum=0.1,
    )
    waiting_messages: int = setting(
        "VIDEO_WAITING_MESSAGES",
        256,
        "Messages that may wait for a reader before no further request is read.",
        minimum=1,
        maximum=100_000,
    )


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """All settings of one process of the video service; its own say which model runs."""

    adapter: str = setting(
        "VIDEO_ADAPTER",
        "pattern",
        "Video adapter: a registered name, or package.module:Class.",
    )
    options: str = setting(
        "VIDEO_ADAPTER_OPTIONS", "", "Options of the adapter as name=value, separated by commas."
    )
    model_dir: str = setting("VIDEO_MODEL_DIR", ".models", "Folder of downloaded model files.")
    model_name: str = setting(
        "VIDEO_MODEL_NAME", "", "Name under which the model is served; unset: the adapter's own."
    )
    device: str = setting(
        "VIDEO_DEVICE", "auto", "Where the model runs, as torch names it; auto: the best there is."
    )
    engine: EngineSettings = group(EngineSettings)
    encoding: EncodingSettings = group(EncodingSettings)
    call: CallSettings = group(CallSettings)
    server: ServerSettings = group(ServerSettings)
    admin: AdminSettings = group(AdminSettings)
    drain: DrainSettings = group(DrainSettings)
    log: LogSettings = group(LogSettings)

    def __post_init__(self) -> None:
        try:
            parse_option_list(self.options)
        except ValueError as error:
            raise ValueError(f"VIDEO_ADAPTER_OPTIONS: {error}") from None

    @property
    def for_adapter(self) -> AdapterSettings:
        """What the adapter's constructor takes."""
        return AdapterSettings(Path(self.model_dir), self.device, parse_option_list(self.options))
