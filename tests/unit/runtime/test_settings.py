"""A process reads its environment once and says everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from services.runtime.settings import (
    REQUIRED,
    SettingsError,
    describe,
    group,
    prefix_of,
    read_settings,
    setting,
)


@dataclass(frozen=True, slots=True)
class Shared:
    deadline_s: float = setting("*_DEADLINE_S", 1.5, "How long.", unit="s", minimum=0.5)


@dataclass(frozen=True, slots=True)
class Sample:
    name: str = setting("SAMPLE_NAME", REQUIRED, "Who.")
    port: int = setting("SAMPLE_PORT", 0, "Where.", minimum=0, maximum=65535)
    rate: float = setting("SAMPLE_RATE", 0.5, "How fast.", unit="1/s", maximum=2.0)
    loud: bool = setting("SAMPLE_LOUD", False, "Whether.")
    folder: Path = setting("SAMPLE_FOLDER", Path("data"), "Files.")
    hosts: tuple[str, ...] = setting("SAMPLE_HOSTS", ("a",), "Whom.")
    limit: int | None = setting("SAMPLE_LIMIT", None, "How many.", minimum=1)
    mode: str = setting("SAMPLE_MODE", "fast", "How.", choices=("fast", "slow"))
    key: int | None = setting("SAMPLE_KEY", None, "A secret.", secret=True)
    shared: Shared = group(Shared)

    def __post_init__(self) -> None:
        if self.mode == "slow" and self.loud:
            raise ValueError("SAMPLE_LOUD needs SAMPLE_MODE=fast")


def problems(**environ: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        read_settings(Sample, {"SAMPLE_NAME": "x", **environ})
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_unset_and_empty_variables_take_their_defaults() -> None:
    """WEIR-050: compose passes on unset variables as empty ones, so empty means unset."""
    bare = read_settings(Sample, {"SAMPLE_NAME": "x"})
    assert bare == Sample(name="x")
    empty = {f"SAMPLE_{name}": " " for name in ("PORT", "HOSTS", "LIMIT", "LOUD", "DEADLINE_S")}
    assert read_settings(Sample, {"SAMPLE_NAME": "x", **empty}) == bare


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("SAMPLE_PORT", "8080", "port", 8080),
        ("SAMPLE_PORT", " 65535 ", "port", 65535),
        ("SAMPLE_RATE", "2", "rate", 2.0),
        ("SAMPLE_RATE", "1e-3", "rate", 0.001),
        ("SAMPLE_LOUD", "YES", "loud", True),
        ("SAMPLE_LOUD", "off", "loud", False),
        ("SAMPLE_FOLDER", "/tmp/x", "folder", Path("/tmp/x")),
        ("SAMPLE_HOSTS", "a, b,,c ", "hosts", ("a", "b", "c")),
        ("SAMPLE_LIMIT", "7", "limit", 7),
        ("SAMPLE_MODE", "slow", "mode", "slow"),
    ],
)
def test_a_value_is_read_as_its_type(variable: str, text: str, field: str, value: object) -> None:
    """WEIR-050: every supported type is read from its text form."""
    settings = read_settings(Sample, {"SAMPLE_NAME": "x", variable: text})
    assert getattr(settings, field) == value


@pytest.mark.parametrize(
    ("variable", "text", "part"),
    [
        ("SAMPLE_PORT", "80a", "'80a' is not a whole number"),
        ("SAMPLE_PORT", "1.0", "not a whole number"),
        ("SAMPLE_PORT", "-1", "below the minimum of 0"),
        ("SAMPLE_PORT", "65536", "above the maximum of 65535"),
        ("SAMPLE_RATE", "nan", "not a finite number"),
        ("SAMPLE_RATE", "inf", "not a finite number"),
        ("SAMPLE_RATE", "2.1", "above the maximum of 2.0 1/s"),
        ("SAMPLE_LOUD", "maybe", "not one of 1, 0, true, false"),
        ("SAMPLE_LIMIT", "0", "below the minimum of 1"),
        ("SAMPLE_MODE", "medium", "not one of fast, slow"),
        ("SAMPLE_DEADLINE_S", "0.1", "below the minimum of 0.5 s"),
        ("SAMPLE_NAME", "", "is required"),
    ],
)
def test_a_bad_value_names_its_variable_and_what_it_must_be(
    variable: str, text: str, part: str
) -> None:
    """WEIR-050: one problem for one bad value."""
    (problem,) = problems(**{variable: text})
    assert problem.startswith(f"{variable}: ")
    assert part in problem


def test_all_problems_come_in_one_error() -> None:
    """WEIR-050: nobody mends a configuration one restart at a time."""
    found = problems(
        SAMPLE_NAME="", SAMPLE_PORT="x", SAMPLE_DEADLINE_S="x", SAMPLE_PROT="1", SAMPLE_MODE="no"
    )
    variables = [problem.partition(":")[0] for problem in found]
    assert variables == [
        "SAMPLE_NAME",
        "SAMPLE_PORT",
        "SAMPLE_MODE",
        "SAMPLE_DEADLINE_S",
        "SAMPLE_PROT",
    ]


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("SAMPLE_PROT", "; did you mean SAMPLE_PORT?"),
        ("SAMPLE_DEADLINE", "; did you mean SAMPLE_DEADLINE_S?"),
        ("SAMPLE_QQQQQQQQQQQQQQQQQQQQQ", ""),
    ],
)
def test_an_unknown_variable_with_the_prefix_is_refused(variable: str, hint: str) -> None:
    """WEIR-050: a misspelt variable must not be dropped in silence."""
    assert problems(**{variable: "1"}) == (f"{variable}: is not a setting{hint}",)


def test_variables_of_others_are_left_alone() -> None:
    """WEIR-050: the prefix ends with the underscore."""
    environ = {"SAMPLE_NAME": "x", "SAMPLER_PORT": "x", "PATH": "/bin", "OTHER_PORT": "x"}
    assert read_settings(Sample, environ) == Sample(name="x")


def test_a_record_may_refuse_a_combination() -> None:
    """WEIR-050: rules over several variables are reported like the others."""
    assert problems(SAMPLE_LOUD="1", SAMPLE_MODE="slow") == ("SAMPLE_LOUD needs SAMPLE_MODE=fast",)


def test_the_value_of_a_secret_never_stands_in_an_error() -> None:
    """WEIR-050: errors are logged."""
    (problem,) = problems(SAMPLE_KEY="hunter2")
    assert "hunter2" not in problem


def test_a_shared_record_takes_the_prefix_of_its_process() -> None:
    """WEIR-050: `*_NAME` in a group is read under the prefix of the record that holds it."""
    settings = read_settings(Sample, {"SAMPLE_NAME": "x", "SAMPLE_DEADLINE_S": "9"})
    assert settings.shared == Shared(9.0)


def test_the_page_knows_every_variable_with_unit_bounds_and_default() -> None:
    """WEIR-050: what is read and what is documented is one declaration."""
    lines = {line.env: line for line in describe(Sample)}
    assert list(lines)[-1] == "SAMPLE_DEADLINE_S"
    assert (lines["SAMPLE_NAME"].default, lines["SAMPLE_NAME"].kind) == (None, "text")
    assert (lines["SAMPLE_PORT"].default, lines["SAMPLE_PORT"].bounds) == ("0", "0 to 65535")
    assert (lines["SAMPLE_LIMIT"].default, lines["SAMPLE_LIMIT"].bounds) == ("unset", "at least 1")
    assert (lines["SAMPLE_RATE"].unit, lines["SAMPLE_RATE"].bounds) == ("1/s", "at most 2.0")
    assert (lines["SAMPLE_LOUD"].default, lines["SAMPLE_HOSTS"].default) == ("0", "a")
    assert lines["SAMPLE_MODE"].bounds == "fast, slow"


def test_a_wrong_declaration_is_a_type_error() -> None:
    """WEIR-050: mistakes of ours are told apart from mistakes of an operator."""

    @dataclass(frozen=True, slots=True)
    class Two:
        one: str = setting("ONE_X", "", "")
        two: str = setting("TWO_X", "", "")

    @dataclass(frozen=True, slots=True)
    class Bare:
        one: str = setting("ONE_X", "", "")
        two: str = ""

    @dataclass(frozen=True, slots=True)
    class Odd:
        one: complex = setting("ONE_X", 0j, "")

    with pytest.raises(TypeError, match="exactly one prefix"):
        prefix_of(Two)
    with pytest.raises(TypeError, match=r"Bare\.two is not declared"):
        read_settings(Bare, {})
    with pytest.raises(TypeError, match="cannot be a"):
        read_settings(Odd, {})
