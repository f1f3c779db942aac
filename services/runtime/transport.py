"""The gRPC options of both ends of a connection, in one place because they must fit each other.

Owns: flow control, keepalive, message sizes, connection age and load balancing, as settings and as
gRPC channel arguments. Does not own: opening channels (`channel`) or building servers (`server`).
Enforces: WEIR-060 (a stalled reader is not run ahead of), WEIR-061 (the server permits the pings
that our clients send), WEIR-062 (calls are spread over every address of a target).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from services.runtime.settings import setting

Options = tuple[tuple[str, int | str], ...]

LOOKAHEAD_BYTES = 65536
"""Bytes that a receiver announces ahead of its reader, for each stream."""

_SERVICE_CONFIG = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a gRPC server listens and what it permits."""

    host: str = setting("*_HOST", "127.0.0.1", "Address that the gRPC server listens on.")
    port: int = setting(
        "*_PORT",
        0,
        "Port that the gRPC server listens on; 0 lets the system choose one, which the ready line "
        "names.",
        minimum=0,
        maximum=65535,
    )
    keepalive_s: float = setting(
        "*_KEEPALIVE_S",
        30.0,
        "Quiet time after which the server asks a client whether it is still there.",
        unit="s",
        minimum=0.1,
    )
    keepalive_timeout_s: float = setting(
        "*_KEEPALIVE_TIMEOUT_S",
        10.0,
        "Time in which a keepalive question must be answered before the connection is dropped.",
        unit="s",
        minimum=0.1,
    )
    min_ping_interval_s: float = setting(
        "*_MIN_PING_INTERVAL_S",
        5.0,
        "Least time between two pings of a client. A client that pings more often is sent away, so "
        "this lies well below every client's keepalive time.",
        unit="s",
        minimum=0.01,
    )
    max_request_bytes: int = setting(
        "*_MAX_REQUEST_BYTES",
        16 * 1024 * 1024,
        "Greatest size of one request message; reference recordings travel in one.",
        unit="bytes",
        minimum=1024,
    )
    max_response_bytes: int = setting(
        "*_MAX_RESPONSE_BYTES",
        4 * 1024 * 1024,
        "Greatest size of one response message.",
        unit="bytes",
        minimum=1024,
    )
    max_connection_age_s: float = setting(
        "*_MAX_CONNECTION_AGE_S",
        300.0,
        "Age at which a connection is asked to go, so that clients look up addresses again and "
        "find new replicas.",
        unit="s",
        minimum=1.0,
    )
    max_connection_age_grace_s: float = setting(
        "*_MAX_CONNECTION_AGE_GRACE_S",
        7200.0,
        "Time that running calls then still have; longer than the longest call.",
        unit="s",
        minimum=1.0,
    )
    max_calls_per_connection: int = setting(
        "*_MAX_CALLS_PER_CONNECTION",
        1000,
        "Greatest count of calls at once on one connection; further ones wait at the client.",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """How a gRPC client keeps its connections."""

    keepalive_s: float = setting(
        "*_BACKEND_KEEPALIVE_S",
        20.0,
        "Quiet time after which a backend is asked whether it is still there. At least twice the "
        "backend's least ping interval.",
        unit="s",
        minimum=0.1,
    )
    keepalive_timeout_s: float = setting(
        "*_BACKEND_KEEPALIVE_TIMEOUT_S",
        10.0,
        "Time in which a keepalive question must be answered before the connection is dropped.",
        unit="s",
        minimum=0.1,
    )
    max_request_bytes: int = setting(
        "*_BACKEND_MAX_REQUEST_BYTES",
        16 * 1024 * 1024,
        "Greatest size of one request to a backend.",
        unit="bytes",
        minimum=1024,
    )
    max_response_bytes: int = setting(
        "*_BACKEND_MAX_RESPONSE_BYTES",
        4 * 1024 * 1024,
        "Greatest size of one response of a backend.",
        unit="bytes",
        minimum=1024,
    )
    max_reconnect_s: float = setting(
        "*_BACKEND_MAX_RECONNECT_S",
        5.0,
        "Longest wait between two tries to reach a backend that is away.",
        unit="s",
        minimum=0.1,
    )


def server_options(settings: ServerSettings) -> Options:
    """Return the channel arguments of a server."""
    return (
        *_flow_control(),
        ("grpc.keepalive_time_ms", _ms(settings.keepalive_s)),
        ("grpc.keepalive_timeout_ms", _ms(settings.keepalive_timeout_s)),
        # WEIR-061: gRPC permits one ping in 300 s by default and answers more with GOAWAY.
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(settings.min_ping_interval_s)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.max_receive_message_length", settings.max_request_bytes),
        ("grpc.max_send_message_length", settings.max_response_bytes),
        ("grpc.max_connection_age_ms", _ms(settings.max_connection_age_s)),
        ("grpc.max_connection_age_grace_ms", _ms(settings.max_connection_age_grace_s)),
        ("grpc.max_concurrent_streams", settings.max_calls_per_connection),
        # Two processes on one port would share its connections without anybody noticing.
        ("grpc.so_reuseport", 0),
    )


def channel_options(settings: ChannelSettings) -> Options:
    """Return the channel arguments of a client."""
    return (
        *_flow_control(),
        ("grpc.keepalive_time_ms", _ms(settings.keepalive_s)),
        ("grpc.keepalive_timeout_ms", _ms(settings.keepalive_timeout_s)),
        ("grpc.keepalive_permit_without_calls", 1),
        # A quiet stream has no data; without this gRPC stops asking after two pings.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_send_message_length", settings.max_request_bytes),
        ("grpc.max_receive_message_length", settings.max_response_bytes),
        # WEIR-062: the default sticks to the first address that answers.
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", _ms(settings.max_reconnect_s)),
        # Connections belong to one channel: closing it closes them.
        ("grpc.use_local_subchannel_pool", 1),
        # Backends are inside; a proxy of the environment is meant for the outside.
        ("grpc.enable_http_proxy", 0),
    )


def _flow_control() -> Options:
    # WEIR-060: bandwidth probing grows the window to megabytes, minutes of speech nobody reads.
    return (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", LOOKAHEAD_BYTES))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
