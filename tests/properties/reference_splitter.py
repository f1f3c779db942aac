"""The splitter of buffered mode in its simplest form: the whole text at hand, nothing kept.

Owns: an oracle. It shares no code with the splitter, reads one character after the other and looks
ahead as far as it likes. Enforces: nothing; it is what IO-INV-102 is compared with.
"""

from __future__ import annotations

LATIN = ".!?"
ALONE = {"none": "", "sentence": "。！？…।॥؟", "clause": "。！？…।॥؟,;，；،"}
CLOSERS = "”’»›)]}）】」』》〉〕］｝"
GROUPING = ",，،"


def white_or_end(text: str, index: int) -> bool:
    """Whether white space or nothing stands at `index`."""
    return index >= len(text) or text[index].isspace()


def run_end(text: str, start: int, marks: str) -> int:
    """Where the marks that begin at `start` end, with what they close."""
    end = start + 1
    after_quote = False
    while end < len(text):
        character = text[end]
        if character in marks or (character in CLOSERS and not after_quote):
            after_quote = False
        elif character in "\"'" and (
            white_or_end(text, end + 1) or (character == '"' and text.count('"', 0, end) % 2 == 1)
        ):
            after_quote = True
        else:
            break
        end += 1
    return end


def cuts(text: str, start: int, end: int, alone: str) -> bool:
    """Whether the run from `start` to `end` ends a piece."""
    beside = text[max(0, start - 1) : start] + text[end : end + 1]
    if end - start == 1 and text[start] in GROUPING and len(beside) == 2 and beside.isdecimal():
        return False
    return white_or_end(text, end) or any(mark in alone for mark in text[start:end])


def split_whole(text: str, granularity: str) -> list[str]:
    """Cut `text` into pieces."""
    alone = ALONE[granularity]
    marks = "" if granularity == "none" else LATIN + alone
    pieces: list[str] = []
    begin = index = 0
    while index < len(text):
        if text[index] not in marks:
            index += 1
            continue
        end = run_end(text, index, marks)
        if cuts(text, index, end, alone) and end < len(text):
            pieces.append(text[begin:end])
            begin = end
        index = end
    return [*pieces, text[begin:]] if begin < len(text) else pieces
