"""The splitter of buffered mode."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.edge.text.splitter import SplitGranularity, split

SENTENCES = [
    ("latin marks need white space", "One. Two! Three? Four", "One.| Two!| Three?| Four"),
    ("or the end", "One. Two.", "One.| Two."),
    ("not inside a word or a name", "a.b.c weir.dev Hi!you", "a.b.c weir.dev Hi!you"),
    ("not inside a decimal", "It is 3.14 or 2.5. Yes.", "It is 3.14 or 2.5.| Yes."),
    ("a new line is white space", "One.\nTwo.", "One.|\nTwo."),
    ("an ideographic space is white space", "One.\u3000Two", "One.|\u3000Two"),
    ("cjk marks cut at once", "好。再！三？四", "好。|再！|三？|四"),
    ("an ellipsis cuts at once", "等…好", "等…|好"),
    ("danda", "नमस्ते।कैसे हो॥ठीक", "नमस्ते।|कैसे हो॥|ठीक"),
    ("arabic question mark", "كيف؟نعم", "كيف؟|نعم"),
    ("runs stay together", "What?! No... Yes", "What?!| No...| Yes"),
    ("cjk runs stay together", "什么？！……好", "什么？！……|好"),
    ("mixed runs cut at once", "Wow!。next", "Wow!。|next"),
    ("closing quote", 'He said "no." Then left.', 'He said "no."| Then left.'),
    ("closing single quote", "He said 'no.' Then left.", "He said 'no.'| Then left."),
    ("curly quotes", "“Yes.” “No.”", "“Yes.”| “No.”"),
    ("cjk closing quote", "他说“好。”然后走了。", "他说“好。”|然后走了。"),
    ("corner brackets", "「好。」再", "「好。」|再"),
    ("closing bracket", "(See this.) Then go.", "(See this.)| Then go."),
    ("a bracket then a mark", "（好。）。再", "（好。）。|再"),
    ("several closers", "“（好！）”再", "“（好！）”|再"),
    ("a straight quote that closes", '他说"好。"然后', '他说"好。"|然后'),
    ("a straight quote that opens", '好。"然后"。', '好。|"然后"。'),
    ("an apostrophe does not close", "好。'tis", "好。|'tis"),
    ("leading white space goes along", "  One.  Two", "  One.|  Two"),
    ("white space at the end is on its own", "One. Two. \n", "One.| Two.| \n"),
    ("a mark alone is a piece", "Hello! ! World", "Hello!| !| World"),
    ("clause marks do not cut", "a, b; c，d；e", "a, b; c，d；e"),
]

CLAUSES = [
    ("latin clause marks", "a, b; c", "a,| b;| c"),
    ("also without white space", "a,b;c", "a,|b;|c"),
    ("cjk clause marks", "一，二；三", "一，|二；|三"),
    ("arabic comma", "واحد، اثنان", "واحد،| اثنان"),
    ("sentence marks still cut", "a. b, c。d", "a.| b,| c。|d"),
    ("not inside a number", "1,000 and 1，000", "1,000 and 1，000"),
    ("not inside a longer number", "1,234,567.89元，好", "1,234,567.89元，|好"),
    ("not inside a full-width number", "１，０００元", "１，０００元"),
    ("not inside an arabic number", "١،٠٠٠", "١،٠٠٠"),
    ("after a number", "1,000, then 2", "1,000,| then 2"),
    ("between numbers with white space", "1, 2, 3", "1,| 2,| 3"),
    ("a semicolon groups no digits", "1;2；3", "1;|2；|3"),
    ("closing quote", '"Yes," she said.', '"Yes,"| she said.'),
    ("a run of both kinds of mark", "好。，再", "好。，|再"),
    ("the ideographic comma does not cut", "甲、乙", "甲、乙"),
]


@pytest.mark.parametrize(("text", "pieces"), [row[1:] for row in SENTENCES])
def test_sentence_granularity(text: str, pieces: str) -> None:
    """IO-INV-102: pieces are the raw text, cut after sentences."""
    assert "|".join(split(text, "sentence")) == pieces


@pytest.mark.parametrize(("text", "pieces"), [row[1:] for row in CLAUSES])
def test_clause_granularity(text: str, pieces: str) -> None:
    """IO-INV-102: pieces are the raw text, cut after sentences and clauses."""
    assert "|".join(split(text, "clause")) == pieces


@pytest.mark.parametrize("granularity", SplitGranularity)
@pytest.mark.parametrize(
    ("text", "pieces"), [("", []), ("  \n", ["  \n"]), ("。", ["。"]), (" x ", [" x "])]
)
def test_little_text(granularity: SplitGranularity, text: str, pieces: list[str]) -> None:
    """IO-INV-102: nothing is lost, and there is no empty piece."""
    assert split(text, granularity) == pieces


def test_no_granularity_is_one_piece() -> None:
    """IO-INV-102: `none` leaves the utterance whole."""
    assert split("One. Two. 三。", "none") == ["One. Two. 三。"]


def test_an_unknown_granularity_is_refused() -> None:
    """IO-INV-102: nothing stands in for a granularity that is not there."""
    with pytest.raises(ValueError, match="word"):
        split("One.", "word")


TEXTS = st.text(alphabet="ab1２٣ .,;!?。，；،।…\"'”)「 \n\u3000好😀", max_size=40)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(SplitGranularity))
def test_pieces_are_the_text(text: str, granularity: SplitGranularity) -> None:
    """IO-INV-102: pieces concatenated are the text, and none but the last one is blank."""
    pieces = split(text, granularity)
    assert "".join(pieces) == text
    assert all(piece.strip() for piece in pieces[:-1])
