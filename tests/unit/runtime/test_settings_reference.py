"""The reference page says what the processes read."""

# setting() declares a field; it holds no value to share

from __future__ import annotations

from dataclasses import dataclass

import pytest

from services.runtime.settings import REQUIRED, describe, setting
from tools.settings_reference import PAGE, PROCESSES, page


@dataclass(frozen=True, slots=True)
class PageSettings:
    name: str = setting("PAGE_NAME", REQUIRED, "A name, a|b <x>.")
    wait_s: float = setting("PAGE_WAIT_S", 1.5, "A wait.", unit="s", minimum=0.5)
    mode: str = setting("PAGE_MODE", "fast", "A mode.", choices=("fast", "slow"))
    limit: int | None = setting("PAGE_LIMIT", None, "A limit.")


def test_the_committed_page_is_the_one_the_records_give() -> None:
    """WEIR-050: the page cannot fall behind."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    "row",
    [
        "| `PAGE_NAME` | required | text | A name, a\\|b &lt;x>. |",
        "| `PAGE_WAIT_S` | `1.5` | number in s, at least 0.5 | A wait. |",
        "| `PAGE_MODE` | `fast` | fast, slow | A mode. |",
        "| `PAGE_LIMIT` | unset | whole number | A limit. |",
    ],
)
def test_a_row_has_default_type_unit_bounds_and_meaning(row: str) -> None:
    """WEIR-050: everything that a declaration says, escaped for a table."""
    rows = page([("services.page", f"{__name__}:PageSettings")]).splitlines()
    assert row in rows


@pytest.mark.parametrize("path", [path for _, path in PROCESSES])
def test_every_variable_of_every_process_is_on_the_page_once(path: str) -> None:
    """WEIR-050: and its unit is told when its name ends in one."""
    module, _, name = path.partition(":")
    record = getattr(__import__(module, fromlist=[name]), name)
    text = page()
    for line in describe(record):
        assert text.count(f"| `{line.env}` |") == 1
        assert line.doc.endswith(".")
        for suffix, unit in (("_S", "s"), ("_MS", "ms"), ("_BYTES", "bytes")):
            assert not line.env.endswith(suffix) or line.unit == unit
