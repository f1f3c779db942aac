"""The compose file, checked without a container engine."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from services.runtime.lifecycle import DrainSettings
from services.runtime.settings import read_settings
from tests.deploy.settings_records import RECORDS
from tests.processes import ROOT

BACKENDS = ("tts", "video")
SERVICES = ("edge", *BACKENDS)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file, aliases and merge keys resolved."""
    loaded: dict[str, Any] = YAML(typ="safe").load(ROOT / "docker-compose.yml")
    return loaded


def schema() -> dict[str, Any]:
    """The schema of the compose specification."""
    vendored = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    loaded: dict[str, Any] = json.loads((vendored / "compose-spec.json").read_text("utf-8"))
    return loaded


def seconds(duration: str) -> float:
    """Read a duration of the one form that the file uses."""
    assert duration.endswith("s")
    return float(duration.removesuffix("s"))


def test_the_file_is_valid_by_the_compose_specification(compose: dict[str, Any]) -> None:
    """WEIR-383: the compose file is valid."""
    jsonschema.validate(compose, schema())


def test_the_schema_refuses_what_is_not_compose(compose: dict[str, Any]) -> None:
    """WEIR-383: the check above can fail."""
    broken = {**compose, "services": {"edge": {"imag": "weir-edge"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema())


@pytest.mark.parametrize("service", SERVICES)
def test_every_variable_is_a_setting(compose: dict[str, Any], service: str) -> None:
    """WEIR-050: nothing is set that the process would refuse to start with."""
    read_settings(RECORDS[service], compose["services"][service]["environment"])


def test_every_published_port_is_on_loopback(compose: dict[str, Any]) -> None:
    """WEIR-383: the edge needs no key only where nobody else can reach it."""
    published = [
        port for service in compose["services"].values() for port in service.get("ports", ())
    ]
    assert published, "the edge is published"
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert compose["services"]["edge"]["environment"]["EDGE_ALLOW_ANONYMOUS"] == "1"


@pytest.mark.parametrize("service", BACKENDS)
def test_only_the_edge_is_published(compose: dict[str, Any], service: str) -> None:
    """WEIR-383: the services behind it have no key of their own, so only the edge reaches them."""
    assert "ports" not in compose["services"][service]
    assert compose["services"][service]["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] is True


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_is_given_longer_than_its_drain(compose: dict[str, Any], service: str) -> None:
    """WEIR-383: SIGKILL never comes before the process's own deadlines have passed."""
    drain = DrainSettings()
    grace_s = seconds(compose["services"][service]["stop_grace_period"])
    assert grace_s > drain.deadline_s + drain.close_timeout_s


@pytest.mark.parametrize("service", [*SERVICES, "models"])
def test_containers_run_with_the_least_they_need(compose: dict[str, Any], service: str) -> None:
    """WEIR-383: read-only root, no capabilities, no new privileges."""
    entry = compose["services"][service]
    assert entry["read_only"] is True
    assert entry["cap_drop"] == ["ALL"]
    assert entry["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("service", BACKENDS)
def test_the_edge_stops_before_what_it_depends_on(compose: dict[str, Any], service: str) -> None:
    """WEIR-381: compose stops in the reverse order of `depends_on`."""
    assert service in compose["services"]["edge"]["depends_on"]
    assert "edge" not in compose["services"][service].get("depends_on", ())


@pytest.mark.parametrize("service", BACKENDS)
def test_the_edge_looks_where_the_service_listens(compose: dict[str, Any], service: str) -> None:
    """WEIR-383: name and port in the compose file are those of the image."""
    target = compose["services"]["edge"]["environment"][f"EDGE_{service.upper()}_TARGETS"]
    image = (ROOT / "deploy" / f"{service}.Dockerfile").read_text("utf-8")
    name, _, port = target.partition(":")
    assert name == service
    assert f"{service.upper()}_PORT={port} " in image
    assert f"EXPOSE {port}\n" in image


@pytest.mark.parametrize("service", [*SERVICES, "models"])
def test_every_image_is_built_from_a_file_and_target_that_exist(
    compose: dict[str, Any], service: str
) -> None:
    """WEIR-383: a build never fails over a name."""
    build = compose["services"][service]["build"]
    dockerfile = (ROOT / build["context"] / build["dockerfile"]).read_text("utf-8")
    if "target" in build:
        assert f" AS {build['target']}\n" in dockerfile
