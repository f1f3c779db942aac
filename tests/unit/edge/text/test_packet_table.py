"""The packet table of `zh_en_special_v1`: what is pending after each packet."""

from __future__ import annotations

import pytest

from services.edge.text.policy import CommitmentPolicy, PolicyState
from services.edge.text.zh_en_special_v1 import PROFILE

ROWS = [
    (["金额为2026", "元"], ["2026", "2026元"]),
    (["温度25", "摄氏", "度"], ["25", "25摄氏", "25摄氏度"]),
    (["温度80", "°", "F", "，记录"], ["80", "80°", "80°F", ""]),
    (["完成率12", ".", "5", "%"], ["12", "12.", "12.5", "12.5%"]),
    (["版本v2", ".", "1", "发布"], ["v2", "v2.", "v2.1", ""]),
    (["战成2", "/2", "平", "局"], ["2", "2/2", "2/2平", ""]),
    (["前文——", "后文"], ["——", ""]),
    (["e.", "g.", " 中文"], ["e.", "e.g.", ""]),
    (["地址127.0", ".0", ".1", "，继续"], ["127.0", "127.0.0", "127.0.0.1", ""]),
    (["重量25", " kg", "，记录"], ["25", "25 kg", ""]),
    (["按1", "\ufe0f\u20e3", "继续。"], ["1", "1\ufe0f\u20e3", "。"]),
    (["Value is .", "5 seconds."], [".", ".5 seconds."]),
    (["值12.5，继续。下一句!"], ["!"]),
]


@pytest.mark.parametrize(("packets", "pending"), ROWS, ids=["/".join(row[0]) for row in ROWS])
def test_pending_after_each_packet(packets: list[str], pending: list[str]) -> None:
    """IO-INV-102: a suffix stays pending while a continuation can change its reading."""
    policy = CommitmentPolicy(PROFILE)
    released = ""
    for count, (packet, expected) in enumerate(zip(packets, pending, strict=True), start=1):
        update = policy.feed(packet)
        released += "".join(span.source_text for span in update.spans)
        assert update.pending_text == policy.pending_text == expected
        assert released + expected == "".join(packets[:count])


def test_a_confirmed_run_is_released_with_its_boundary() -> None:
    """IO-INV-102: the run in the middle is a boundary, the one at the frontier waits."""
    update = CommitmentPolicy(PROFILE).feed("值12.5，继续。下一句!")
    assert [(span.source_text, span.boundary_after) for span in update.spans] == [
        ("值", False),
        ("12.5", False),
        ("，继续。", True),
        ("下一句", False),
    ]


def test_too_much_pending_text_fails_and_keeps_what_was_pending() -> None:
    """IO-INV-103: with a limit of 3, `12` then `34` fails and `12` stays pending."""
    policy = CommitmentPolicy(PROFILE, max_pending_characters=3)
    policy.feed("12")
    with pytest.raises(ValueError, match="more than 3 characters of unresolved text"):
        policy.feed("34")
    assert policy.pending_text == "12"
    assert policy.state is PolicyState.FAILED
