"""What Helios remembers of the video so far.

Owns: the last latents, the first one, and the form in which the transformer is given them. Does not
own: making latents. Enforces: WEIR-352 (a history never grows, and is never changed: the next one
is a new value). Imports torch: import it inside `load` only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

SIZES = (16, 2, 1)
"""Latents that are remembered: far, near and last."""
LENGTH = sum(SIZES)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The last latents [1, C, 19, h, w] and the first [1, C, 1, h, w], None before there is one."""

    latents: torch.Tensor
    first: torch.Tensor | None = None

    @classmethod
    def empty(cls, channels: int, height: int, width: int, device: torch.device) -> History:
        """Return the history of a video that has not begun; sizes in latents."""
        return cls(torch.zeros(1, channels, LENGTH, height, width, device=device))

    @classmethod
    def from_picture(cls, picture: torch.Tensor, last: torch.Tensor) -> History:
        """Return the history of a video that begins with a picture.

        `picture` are its latents and `last` those of it as the end of a chunk of standing video,
        each [1, C, 1, h, w].
        """
        _, channels, _, height, width = picture.shape
        empty = cls.empty(channels, height, width, picture.device).latents
        return cls(torch.cat([empty[:, :, :-1], last], dim=2), picture)

    def followed_by(self, latents: torch.Tensor) -> History:
        """Return the history after a chunk [1, C, T, h, w]."""
        first = latents[:, :, :1].clone() if self.first is None else self.first
        # WEIR-352: copies of what is kept; a view would also keep what fell out of it.
        kept = torch.cat([self.latents, latents], dim=2)[:, :, -LENGTH:].clone()
        return History(kept, first)

    def context(self, dtype: torch.dtype, chunk: int) -> dict[str, torch.Tensor]:
        """Return what the transformer is told beside `chunk` latents of noise."""
        far, near, last = torch.split(self.latents, list(SIZES), dim=2)
        first = torch.zeros_like(last) if self.first is None else self.first
        places = torch.split(torch.arange(1 + LENGTH + chunk), [1, *SIZES, chunk])
        return {
            "latents_history_long": far.to(dtype),
            "latents_history_mid": near.to(dtype),
            "latents_history_short": torch.cat([first, last], dim=2).to(dtype),
            "indices_latents_history_long": places[1][None],
            "indices_latents_history_mid": places[2][None],
            "indices_latents_history_short": torch.cat([places[0], places[3]])[None],
            "indices_hidden_states": places[4][None],
        }
