"""Which spoken piece belongs to which source word, after a normalizer has rewritten the text.

Owns: aligning two sequences in order when one was made from the other. Does not own: reading
(`english`, `chinese`). A rewritten stretch (`7:30 pm` -> `seven thirty P.M.`) is dealt out to its
words by how much each of them says when it is read alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

UNASSIGNED = -1


def align(
    words: Sequence[str], pieces: Sequence[str], weigh: Callable[[int], int]
) -> tuple[int, ...]:
    """Return for each piece the index of its word, never falling; UNASSIGNED without words.

    Equal keys anchor the alignment. `weigh(i)` says how many pieces word i makes when read alone;
    it is asked only for words in stretches that were rewritten.
    """
    keys = [_key(word) for word in words]
    owners = [UNASSIGNED] * len(pieces)
    matcher = SequenceMatcher(None, keys, [_key(piece) for piece in pieces], autojunk=False)
    for tag, word_start, word_end, start, end in matcher.get_opcodes():
        if tag == "equal":
            owners[start:end] = range(word_start, word_end)
        elif start < end and word_start < word_end:
            weights = [weigh(index) for index in range(word_start, word_end)]
            for offset, share in enumerate(shares(weights, end - start)):
                owners[start + offset] = word_start + share
    return tuple(_filled(owners, len(words)))


def shares(weights: Sequence[int], count: int) -> list[int]:
    """Deal `count` pieces out in order; return for each piece the index of its weight.

    Exact when the weights add up to `count`, in proportion otherwise.
    """
    total = sum(weights)
    if total == 0:
        weights, total = [1] * len(weights), len(weights)
    edges: list[float] = []
    reached = 0
    for weight in weights:
        reached += weight
        edges.append(reached * count / total)
    dealt: list[int] = []
    index = 0
    for piece in range(count):
        while edges[index] <= piece + 0.5 and index + 1 < len(edges):
            index += 1
        dealt.append(index)
    return dealt


def _filled(owners: list[int], words: int) -> list[int]:
    """Give pieces that nothing claimed to the word before them, at the start to the one after."""
    if not words:
        return owners
    last = next((owner for owner in owners if owner != UNASSIGNED), 0)
    filled = []
    for owner in owners:
        last = last if owner == UNASSIGNED else owner
        filled.append(last)
    return filled


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold() or text
