"""The examples of the pages, run as they stand against real processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import wave
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import code_blocks
from tests.processes import ROOT, StartProcess

EXAMPLE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Example:
    """One block of a page: the text it holds, the WAV file it writes, and what it prints."""

    page: str
    holds: str
    file: str
    prints: tuple[str, ...] = ()

    def code(self) -> str:
        """The block's text."""
        blocks = [b.text for b in code_blocks(ROOT / self.page) if b.language == "python"]
        return next(text for text in blocks if self.holds in text)


EXAMPLES = (
    Example(
        "README.md",
        "asyncio.run",
        "speech.wav",
        ("audio.start It costs $12.50, and weighs 3.5 kg.", "audio.start  Thank you!"),
    ),
    Example("docs/tutorial/first-speech.md", "asyncio.run", "hello.wav"),
    Example("docs/reference/grpc-tts.md", "TtsServiceStub", "hello.wav"),
)


async def run_example(code: str, folder: Path) -> str:
    """Run `code` in `folder`; return what it printed. Fails with its errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(EXAMPLE_TIMEOUT_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.page)
async def test_the_example_of_a_page_runs_as_it_stands(
    example: Example, start_process: StartProcess, tmp_path: Path
) -> None:
    """WEIR-386: only the address is changed, since a test never uses a fixed port."""
    tts = await start_process("services.tts", TTS_ADAPTER="tone", TTS_PORT="0")
    edge = await start_process("services.edge", EDGE_PORT="0", EDGE_TTS_TARGETS=tts.address)
    code = example.code()
    assert "127.0.0.1:8000" in code or "127.0.0.1:50051" in code
    code = code.replace("127.0.0.1:8000", edge.address).replace("127.0.0.1:50051", tts.address)
    printed = (await run_example(code, tmp_path)).splitlines()
    for line in example.prints:
        assert line in printed
    with wave.open(str(tmp_path / example.file), "rb") as file:
        assert any(file.readframes(file.getnframes()))
