"""The scanner: the one place where the profile releases text.

Owns: the transition table and the walk along it. Does not own: how atoms are recognized, nor the
life of an utterance (the policy).
Enforces: IO-INV-102: what is released and what stays pending is what a replay of the pending text
and the packet from SCAN would give, and only READY releases lexical and special atoms.

A scan begins in SCAN. When text is pending, SCAN need not look at it: the text begins as it did
the time before, so the same recognizer is entered, and that one goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from services.edge.text.frontend import Span, SpanKind
from services.edge.text.zh_en_special_v1.characters import (
    DIGITS,
    LEADING_DECIMAL_POINTS,
    LEADING_SYMBOLS,
    LETTERS,
)
from services.edge.text.zh_en_special_v1.held import (
    NEW_SPECIAL,
    NEW_WORD,
    Held,
    LexicalMemo,
    Memo,
    NaturalMemo,
    SpecialMemo,
)
from services.edge.text.zh_en_special_v1.recognizers import (
    read_natural,
    recognize_lexical,
    recognize_special,
    run_goes_on,
)


class ScanState(StrEnum):
    """Where the scanner is. HOLD and DONE end the scan."""

    SCAN = "SCAN"
    NATURAL = "NATURAL"
    LEXICAL = "LEXICAL"
    SPECIAL = "SPECIAL"
    READY = "READY"
    HOLD = "HOLD"
    DONE = "DONE"


class ScanEvent(StrEnum):
    """What a state found out."""

    NATURAL_FOUND = "natural_found"
    LEXICAL_FOUND = "lexical_found"
    SPECIAL_FOUND = "special_found"
    TEXT_EXHAUSTED = "text_exhausted"
    ADVANCED = "advanced"
    LEFT_INCOMPLETE = "left_incomplete"
    CLOSED = "closed"
    RELEASED = "released"


_SCAN_TRANSITIONS: Final[Mapping[tuple[ScanState, ScanEvent], ScanState]] = MappingProxyType(
    {
        (ScanState.SCAN, ScanEvent.NATURAL_FOUND): ScanState.NATURAL,
        (ScanState.SCAN, ScanEvent.LEXICAL_FOUND): ScanState.LEXICAL,
        (ScanState.SCAN, ScanEvent.SPECIAL_FOUND): ScanState.SPECIAL,
        (ScanState.SCAN, ScanEvent.TEXT_EXHAUSTED): ScanState.DONE,
        (ScanState.NATURAL, ScanEvent.ADVANCED): ScanState.SCAN,
        (ScanState.NATURAL, ScanEvent.LEFT_INCOMPLETE): ScanState.HOLD,
        (ScanState.LEXICAL, ScanEvent.CLOSED): ScanState.READY,
        (ScanState.LEXICAL, ScanEvent.LEFT_INCOMPLETE): ScanState.HOLD,
        (ScanState.SPECIAL, ScanEvent.CLOSED): ScanState.READY,
        (ScanState.SPECIAL, ScanEvent.LEFT_INCOMPLETE): ScanState.HOLD,
        (ScanState.READY, ScanEvent.RELEASED): ScanState.SCAN,
    }
)

_STARTS: Final[dict[str, ScanEvent]] = {
    **dict.fromkeys(LETTERS, ScanEvent.LEXICAL_FOUND),
    **dict.fromkeys(DIGITS + LEADING_SYMBOLS, ScanEvent.SPECIAL_FOUND),
}
_RESUMED: Final[dict[type[object], ScanEvent]] = {
    NaturalMemo: ScanEvent.NATURAL_FOUND,
    LexicalMemo: ScanEvent.LEXICAL_FOUND,
    SpecialMemo: ScanEvent.SPECIAL_FOUND,
}


def _starting_event(text: str, index: int) -> ScanEvent:
    """Tell what the character at `index` starts."""
    character = text[index]
    if character in LEADING_DECIMAL_POINTS and index + 1 < len(text) and text[index + 1] in DIGITS:
        follows_dot = character == "." and index > 0 and text[index - 1] == "."
        return ScanEvent.NATURAL_FOUND if follows_dot else ScanEvent.SPECIAL_FOUND
    return _STARTS.get(character, ScanEvent.NATURAL_FOUND)


class _Scan:
    """One walk over the pending text and a packet. Changes nothing but itself."""

    __slots__ = ("_atom_end", "_cursor", "_final", "_kind", "_resumed", "_text", "held", "spans")

    def __init__(self, held: Held | None, packet: str, final: bool) -> None:
        self._resumed = held
        self._text = packet
        self._final = final
        self._cursor = 0
        self._atom_end = 0
        self._kind = SpanKind.LEXICAL
        self.held: Held | None = None
        self.spans: list[Span] = []

    def look(self) -> ScanEvent:
        if self._resumed is not None:
            return _RESUMED[type(self._resumed.memo)]
        if self._cursor == len(self._text):
            return ScanEvent.TEXT_EXHAUSTED
        return _starting_event(self._text, self._cursor)

    def natural(self) -> ScanEvent:
        resumed = self._resumed
        if resumed is not None:
            assert isinstance(resumed.memo, NaturalMemo)
            if not self._final and run_goes_on(resumed.memo, self._text):
                return self._hold_on(resumed, resumed.memo)
            self._read_together(resumed)
        self._cursor, memo = read_natural(self._text, self._cursor, self._final, self.spans)
        return ScanEvent.ADVANCED if memo is None else self._hold(memo)

    def lexical(self) -> ScanEvent:
        self._kind = SpanKind.LEXICAL
        resumed = self._resumed
        if resumed is None:
            return self._settle(*recognize_lexical(self._text, self._cursor, NEW_WORD))
        before = resumed.memo
        assert isinstance(before, LexicalMemo)
        end, memo = recognize_lexical(before.tail + self._text, 0, before)
        return self._settle_resumed(resumed, end - len(before.tail), memo)

    def special(self) -> ScanEvent:
        self._kind = SpanKind.SPECIAL
        resumed = self._resumed
        if resumed is None:
            return self._settle(*recognize_special(self._text, self._cursor, NEW_SPECIAL))
        before = resumed.memo
        assert isinstance(before, SpecialMemo)
        end, memo = recognize_special(before.tail + self._text, 0, before)
        return self._settle_resumed(resumed, end - len(before.tail), memo)

    def release(self) -> ScanEvent:
        self.spans.append(Span(self._text[self._cursor : self._atom_end], self._kind))
        self._cursor = self._atom_end
        return ScanEvent.RELEASED

    def _settle(self, end: int, memo: Memo | None) -> ScanEvent:
        # IO-INV-103: at the end of input nothing stays open.
        if memo is not None and not self._final:
            return self._hold(memo)
        self._atom_end = end
        return ScanEvent.CLOSED

    def _settle_resumed(self, resumed: Held, end: int, memo: Memo | None) -> ScanEvent:
        """Settle a held atom; `end` counts from the start of the packet."""
        if memo is not None and not self._final:
            return self._hold_on(resumed, memo)
        self._read_together(resumed)
        self._atom_end = resumed.length + end
        return ScanEvent.CLOSED

    def _hold(self, memo: Memo) -> ScanEvent:
        pending = self._text[self._cursor :]
        self.held = Held((None, pending), len(pending), memo)
        return ScanEvent.LEFT_INCOMPLETE

    def _hold_on(self, resumed: Held, memo: Memo) -> ScanEvent:
        length = resumed.length + len(self._text)
        self.held = Held((resumed.chain, self._text), length, memo)
        return ScanEvent.LEFT_INCOMPLETE

    def _read_together(self, resumed: Held) -> None:
        """From here on read the whole pending text: it is being released, so this is paid once."""
        self._text = resumed.text() + self._text
        self._resumed = None


_STEPS: Final[Mapping[ScanState, Callable[[_Scan], ScanEvent]]] = MappingProxyType(
    {
        ScanState.SCAN: _Scan.look,
        ScanState.NATURAL: _Scan.natural,
        ScanState.LEXICAL: _Scan.lexical,
        ScanState.SPECIAL: _Scan.special,
        ScanState.READY: _Scan.release,
    }
)


def scan(held: Held | None, packet: str, final: bool) -> tuple[tuple[Span, ...], Held | None]:
    """Release what the packet makes certain; return it with what is pending afterwards."""
    walk = _Scan(held, packet, final)
    state = ScanState.SCAN
    while (step := _STEPS.get(state)) is not None:
        state = _SCAN_TRANSITIONS[state, step(walk)]
    return tuple(walk.spans), walk.held
