"""Reading an adapter's options from text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from services.tts.adapters.settings import AdapterSettings, parse_option_list, read_options


@dataclass(frozen=True)
class _Options:
    count: int = 1
    ratio: float = 0.5
    name: str = "none"
    on: bool = False
    folder: Path = Path()
    limit: int | None = 7

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count is at least 0")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        (" , ", {}),
        ("a=1", {"a": "1"}),
        (" a = 1 , b=x=y,", {"a": "1", "b": "x=y"}),
        ("a=", {"a": ""}),
    ],
)
def test_an_option_list_is_names_and_values(text: str, options: dict[str, str]) -> None:
    """WEIR-311: one line of text holds all options of an adapter."""
    assert parse_option_list(text) == options


@pytest.mark.parametrize("text", ["a", "=1", "a=1,a=2", "a=1,b"])
def test_an_option_list_that_is_ambiguous_is_refused(text: str) -> None:
    """WEIR-311: nothing of a wrong list is used."""
    with pytest.raises(ValueError, match="name=value"):
        parse_option_list(text)


def test_options_become_values_of_their_types() -> None:
    """WEIR-311: an adapter sees typed values, and its defaults where nothing was said."""
    given = {"count": "3", "ratio": "1e-3", "name": "x", "on": "True", "folder": "a/b", "limit": ""}
    assert read_options(_Options, given) == _Options(3, 0.001, "x", True, Path("a/b"), None)
    assert read_options(_Options, {}) == _Options()
    assert read_options(_Options, {"limit": "9"}).limit == 9


def test_every_wrong_option_is_reported_at_once() -> None:
    """WEIR-311: an operator corrects a line of options in one go."""
    with pytest.raises(ValueError, match="unknown option x") as caught:
        read_options(_Options, {"count": "many", "on": "yes", "x": "1", "ratio": "0.1"})
    assert "option count cannot be 'many'" in str(caught.value)
    assert "option on cannot be 'yes'" in str(caught.value)
    assert "ratio" not in str(caught.value).replace(
        "known: count, folder, limit, name, on, ratio", ""
    )


def test_what_the_record_refuses_is_refused() -> None:
    """WEIR-311: ranges belong to the adapter's own record."""
    with pytest.raises(ValueError, match="at least 0"):
        read_options(_Options, {"count": "-1"})


@pytest.mark.parametrize("concurrency", [0, -1])
def test_concurrency_is_positive(concurrency: int) -> None:
    """WEIR-311: an adapter that speaks nothing is a mistake of the settings."""
    with pytest.raises(ValueError, match="at least 1"):
        AdapterSettings(concurrency=concurrency)
