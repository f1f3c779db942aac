"""Real service processes for tests: started, watched and ended by their own id.

Owns: the environment a service process gets, its log as it comes, and its end. Does not own: what a
test does with it. Every wait is bounded and tells the log when it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 30.0
EXIT_TIMEOUT_S = 15.0
MAX_LINES = 20_000
SHOWN_LINES = 40

_LAUNCHER = (
    *(sys.executable, "-S", "-E", "-c"),
    # A test run that is killed cannot end its processes; the kernel then does (PR_SET_PDEATHSIG).
    "import ctypes, os, sys; prctl = getattr(ctypes.CDLL(None), 'prctl', None); "
    f"prctl and prctl(1, {signal.SIGKILL.value}); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
)
"""Command that becomes `python` with the arguments that follow, under the same process id."""

_DROPPED_PREFIXES = ("TTS_", "EDGE_", "VIDEO_", "GRPC_", "OTEL_", "PYTEST_", "COV_")


class ProcessError(AssertionError):
    """A process did not do what the test needs; the message ends with its last log lines."""


class StartProcess(Protocol):
    """The `start_process` fixture: starts a process that the fixture ends with the test."""

    async def __call__(
        self,
        module: str,
        *arguments: str,
        ready_timeout_s: float | None = READY_TIMEOUT_S,
        **env: str,
    ) -> ServiceProcess:
        """Start `python -m module`; wait for its ready line unless `ready_timeout_s` is None."""
        ...


class ServiceProcess:
    """One `python -m module` with its log. Start it through the `start_process` fixture.

    The environment is this one's without settings of services and proxies, plus `env`. It dies with
    the thread that starts it, so start it from the main thread, where tests run.
    """

    def __init__(self, module: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.module = module
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._first: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._ended = False
        self.popen = subprocess.Popen(
            [*_LAUNCHER, "-X", "faulthandler", "-m", module, *arguments],
            cwd=ROOT,
            env=_environment(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"stderr {module}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self.popen.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    @property
    def address(self) -> str:
        """`host:port` of the ready line. Raises ProcessError before there is one."""
        with self._changed:
            ready = self._first.get("ready")
        if ready is None:
            raise self._failure("is not ready")
        return str(ready["address"])

    def text(self) -> str:
        """Everything it has written to stderr so far."""
        with self._changed:
            return "\n".join(self._lines)

    def logs(self) -> list[dict[str, Any]]:
        """Every log line so far; lines that are not JSON objects are left out."""
        with self._changed:
            lines = list(self._lines)
        return [line for line in map(_parsed, lines) if line is not None]

    async def ready(self, timeout_s: float = READY_TIMEOUT_S) -> str:
        """Wait for the ready line; return its address."""
        return str((await self.event("ready", timeout_s))["address"])

    async def event(self, name: str, timeout_s: float = EXIT_TIMEOUT_S) -> dict[str, Any]:
        """Wait for the first log line with this event. Fails when the process ends without it."""
        return await asyncio.to_thread(self._wait_for, name, timeout_s)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to this process and no other; nothing when it has ended."""
        self.popen.send_signal(number)

    async def exited(self, timeout_s: float = EXIT_TIMEOUT_S) -> int:
        """Wait for the end; return the exit status, negative when a signal ended it."""
        return await asyncio.to_thread(self._wait_for_exit, timeout_s)

    def close(self) -> None:
        """End it if it still runs, with what it started itself, and read its log to the end."""
        # It leads a process group of its own, so this reaches its children and nothing else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(EXIT_TIMEOUT_S)
        self._reader.join(EXIT_TIMEOUT_S)

    def _read(self) -> None:
        stream = self.popen.stderr
        assert stream is not None
        with stream:
            for line in stream:
                parsed = _parsed(line)
                with self._changed:
                    self._lines.append(line.rstrip("\n"))
                    if parsed is not None:
                        self._first.setdefault(str(parsed.get("event")), parsed)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _wait_for(self, name: str, timeout_s: float) -> dict[str, Any]:
        with self._changed:
            self._changed.wait_for(lambda: name in self._first or self._ended, timeout_s)
            line = self._first.get(name)
        if line is not None:
            return line
        if not self._ended:
            raise self._failure(f"wrote no {name!r} line within {timeout_s} s")
        status = self._wait_for_exit(EXIT_TIMEOUT_S)
        raise self._failure(f"ended with status {status} before a {name!r} line")

    def _wait_for_exit(self, timeout_s: float) -> int:
        try:
            status = self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self._failure(f"has not ended within {timeout_s} s") from None
        self._reader.join(timeout_s)
        return status

    def _failure(self, what: str) -> ProcessError:
        tail = "\n".join(self.text().splitlines()[-SHOWN_LINES:])
        return ProcessError(f"{self.module} (pid {self.pid}) {what}; its log ends:\n{tail}")


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED_PREFIXES) and not name.lower().endswith("_proxy")
    }
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **env}


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None
