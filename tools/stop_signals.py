"""What the signals that end a process do to a tool.

Owns: turning SIGINT, SIGTERM and SIGHUP into an event or a cancellation of the tool's main task.
Does not own: what then has to be stopped (`tools.stack`).
"""

from __future__ import annotations

import asyncio
import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """What SIGINT, SIGTERM and SIGHUP do to the task that made this.

    Once `graceful` is set, the first signal only sets `received`. Before that there is nothing to
    drain, and a second signal means at once: the task is cancelled.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # a coroutine always runs in a task
        self._task = task
        self.received = asyncio.Event()
        self.graceful = False
        for signum in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(signum, self._stop)

    def _stop(self) -> None:
        if self.received.is_set() or not self.graceful:
            self._task.cancel()
        self.received.set()
