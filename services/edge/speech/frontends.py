"""Which text frontend serves an utterance.

Owns: the way from what was agreed to a fresh frontend. Does not own: the frontends, the profiles
(`services.edge.text.registry`), whether the mode may be used at all (`negotiation`). Enforces:
IO-INV-102 (the agreed profile is the one that runs; nothing stands in for it).
"""

from __future__ import annotations

from services.edge.speech.negotiation import Agreement
from services.edge.text.buffered import BufferedTextFrontend
from services.edge.text.frontend import StreamingTextFrontend
from services.edge.text.registry import get_streaming_text_frontend_factory


def open_frontend(agreement: Agreement, max_pending_characters: int) -> StreamingTextFrontend:
    """Return a frontend with fresh state for one utterance.

    `max_pending_characters` bounds the pending text of commitment mode, in code points; buffered
    text is bounded by the utterance's limit. ValueError when the agreed profile is not registered,
    which negotiation has excluded.
    """
    commitment = agreement.commitment
    if commitment is None:
        return BufferedTextFrontend(agreement.split_granularity)
    factory = get_streaming_text_frontend_factory(commitment.profile)
    return factory(language=agreement.language, max_pending_characters=max_pending_characters)
