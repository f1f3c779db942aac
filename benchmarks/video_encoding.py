"""What our container costs: chunks through `ChunkEncoder` against FFmpeg's own muxer.

Owns: the figures for the speed of encoding. Does not own: a verdict, the targets stand in the
documentation. Each size is encoded in turn by both, with the same frames, the same options of
libx264, the same conversion and the same key pictures, best of several repeats:

- `ratio`: frames per second of `ChunkEncoder`, its payloads kept in memory, divided by those of
  libx264 behind FFmpeg's fragmenting MP4 muxer writing into memory.
- `codecs`: frames per second of every codec on offer.

Run `python -m benchmarks.video_encoding [--repeats N] [--seconds S]`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
from av.video.frame import PictureType
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

from services.video.media.codecs import CODECS
from services.video.media.encoder import ChunkEncoder
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.pictures import PIXEL_FORMAT, PictureConverter

SIZES = ((256, 144), (640, 384), (1280, 720))
FPS = 24
CHUNK_FRAMES = 12

Frames = NDArray[np.uint8]


def scene(width: int, height: int, chunks: int) -> list[Frames]:
    """Chunks of a smooth scene with movement, some grain, and a cut every four chunks."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    grain = rng.normal(0, 2, (height, width, 1)).astype(np.float32)
    made = []
    for chunk in range(chunks):
        pictures = np.empty((CHUNK_FRAMES, height, width, 3), np.uint8)
        turn = 2 * (chunk // 4)
        for index, picture in enumerate(pictures):
            at = (chunk * CHUNK_FRAMES + index) / FPS
            waves = [
                127 + 120 * np.sin(columns / 60 + at + turn + shift) * np.cos(rows / 45 - at)
                for shift in (0.0, 1.0, 2.0)
            ]
            picture[:] = np.clip(np.stack(waves, -1) + np.roll(grain, index, 1), 0, 255)
        made.append(pictures)
    return made


def chunk_encoder_fps(video: VideoFormat, chunks: list[Frames], codec: str) -> tuple[float, int]:
    """Frames per second through our encoder and container, and the bytes."""
    encoder = ChunkEncoder(video, codec=codec)
    began = time.perf_counter()
    size = sum(len(encoder.encode(frames).data) for frames in chunks) + len(encoder.trailer())
    taken = time.perf_counter() - began
    encoder.close()
    return len(chunks) * CHUNK_FRAMES / taken, size


def muxer_fps(video: VideoFormat, chunks: list[Frames]) -> tuple[float, int]:
    """Frames per second through bare libx264 and FFmpeg's muxer, and the bytes."""
    sink, settings = io.BytesIO(), EncoderSettings()
    fragments = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    began = time.perf_counter()
    with av.open(sink, "w", format="mp4", options=fragments) as container:
        stream = container.add_stream("libx264", rate=FPS)
        context = stream.codec_context
        context.width, context.height, context.pix_fmt = video.width, video.height, PIXEL_FORMAT
        context.time_base = Fraction(1, FPS)
        context.thread_count = settings.threads
        context.max_b_frames = 0
        context.color_range, context.colorspace = ColorRange.MPEG, Colorspace.ITU709
        context.color_trc, context.color_primaries = ColorTrc.BT709, ColorPrimaries.BT709
        context.options = CODECS["h264"].options(video, settings)
        for picture in pictures(chunks):
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    taken = time.perf_counter() - began
    return len(chunks) * CHUNK_FRAMES / taken, len(sink.getvalue())


def pictures(chunks: list[Frames]) -> Iterator[av.VideoFrame]:
    """All pictures of all chunks, converted as ours are, a key picture first in each."""
    converter, number = PictureConverter(), 0
    for frames in chunks:
        for index, frame in enumerate(frames):
            picture = converter.convert(frame)
            picture.pts, picture.time_base = number, Fraction(1, FPS)
            picture.pict_type = PictureType.NONE if index else PictureType.I
            number += 1
            yield picture


def compare(width: int, height: int, seconds: int, repeats: int) -> tuple[float, dict[str, object]]:
    """The ratio and all figures: both ways in turn, so that both see the same machine; then the
    other codecs once."""
    video = VideoFormat(width, height, FPS)
    chunks = scene(width, height, seconds * FPS // CHUNK_FRAMES)
    ours, theirs = (0.0, 0), (0.0, 0)
    for _ in range(repeats):
        ours = max(ours, chunk_encoder_fps(video, chunks, "h264"))
        theirs = max(theirs, muxer_fps(video, chunks))
    codecs = {"h264": ours}
    for name in set(CODECS) - {"h264"}:
        codecs[name] = chunk_encoder_fps(video, chunks, name)
    ratio = round(ours[0] / theirs[0], 3)
    return ratio, {
        "size": f"{width}x{height}",
        "chunk_encoder_fps": round(ours[0], 1),
        "muxer_fps": round(theirs[0], 1),
        "ratio": ratio,
        "chunk_encoder_bytes": ours[1],
        "muxer_bytes": theirs[1],
        "codecs": {
            name: {"fps": round(fps, 1), "kbit_per_s": round(size * 8 / seconds / 1000)}
            for name, (fps, size) in sorted(codecs.items())
        },
    }


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure the cost of encoding video.")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each figure")
    parser.add_argument("--seconds", type=int, default=4, help="video in each measurement")
    asked = parser.parse_args()
    sizes = [compare(*size, asked.seconds, asked.repeats) for size in SIZES]
    figures = {
        "python": platform.python_version(),
        "av": av.__version__,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "encoder_threads": EncoderSettings().threads,
        "frames_per_chunk": CHUNK_FRAMES,
        "worst_ratio": min(ratio for ratio, _ in sizes),
        "sizes": [compared for _, compared in sizes],
    }
    json.dump(figures, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
