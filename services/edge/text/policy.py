"""The life of one utterance's commitment: open, then finished or failed.

Owns: the states, the limit on the pending text, the promise that a failed call changes nothing.
Does not own: the rules (a profile's scanner), segments (`segments`).
Enforces: IO-INV-102 (a failed call publishes nothing), IO-INV-103 (the end of input releases
everything exactly once, later text is refused, too much unresolved text fails the utterance).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from services.edge.text import zh_en_special_v1
from services.edge.text.frontend import Explanation, Span
from services.edge.text.zh_en_special_v1.held import RESOLUTIONS, Held
from services.edge.text.zh_en_special_v1.scanner import scan

DEFAULT_MAX_PENDING_CHARACTERS: Final = 4096

Scanner: TypeAlias = Callable[[Held | None, str, bool], tuple[tuple[Span, ...], Held | None]]

_SCANNERS: Final[Mapping[str, Scanner]] = MappingProxyType({zh_en_special_v1.PROFILE: scan})


class PolicyState(StrEnum):
    """Where the utterance is. Only an open one takes text."""

    OPEN = "open"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CommitmentUpdate:
    """What one call released, and what was pending after it."""

    spans: tuple[Span, ...]
    final: bool
    held: Held | None

    @property
    def pending_text(self) -> str:
        """The text held after the call. Costs time in proportion to its length."""
        return self.held.text() if self.held is not None else ""


class CommitmentPolicy:
    """Releases raw text once its reading can no longer change. One object per utterance."""

    __slots__ = ("_held", "_max_pending_characters", "_scan", "_state")

    def __init__(
        self, profile: str, max_pending_characters: int = DEFAULT_MAX_PENDING_CHARACTERS
    ) -> None:
        if profile not in _SCANNERS:
            raise ValueError(f"unknown commitment profile: {profile!r}")
        if max_pending_characters <= 0:
            raise ValueError("max_pending_characters must be positive")
        self._scan = _SCANNERS[profile]
        self._max_pending_characters = max_pending_characters
        self._state = PolicyState.OPEN
        self._held: Held | None = None

    @property
    def state(self) -> PolicyState:
        return self._state

    @property
    def final(self) -> bool:
        """Whether the end of input has been reached."""
        return self._state is PolicyState.FINISHED

    @property
    def pending_text(self) -> str:
        """The text held back. Costs time in proportion to its length."""
        return self._held.text() if self._held is not None else ""

    def feed(self, text: str, final: bool = False) -> CommitmentUpdate:
        """Append text, and end the input when `final`.

        ValueError: more text would stay pending than is allowed; the policy has failed.
        RuntimeError: it had finished or failed before. TypeError: not a string; it stays open.
        """
        if self._state is not PolicyState.OPEN:
            # IO-INV-103: text after the end of input is refused.
            raise RuntimeError(f"this utterance is {self._state}: no more text is accepted")
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, not {type(text).__name__}")
        if not text and not final:
            return CommitmentUpdate((), False, self._held)
        # IO-INV-102: assigned only when nothing failed, so a failed call leaves what was pending.
        try:
            spans, held = self._scan(self._held, text, final)
            self._check_limit(held)
        except Exception:
            self._state = PolicyState.FAILED
            raise
        self._held = held
        if final:
            self._state = PolicyState.FINISHED
        return CommitmentUpdate(spans, final, held)

    def explain(self, spans: tuple[Span, ...]) -> Explanation:
        """Tell what is pending after a call that released `spans`, and why."""
        if self._held is None:
            return Explanation(spans, "", None, None)
        rule = self._held.rule()
        return Explanation(spans, self._held.text(), rule, RESOLUTIONS[rule])

    def _check_limit(self, held: Held | None) -> None:
        # IO-INV-103: tested on what stays pending, so a long packet that resolves is fine.
        if held is not None and held.length > self._max_pending_characters:
            raise ValueError(
                f"more than {self._max_pending_characters} characters of unresolved text"
            )
