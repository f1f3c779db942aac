"""Ask a service of this suite how it is, for container health checks; the exit status answers.

Usage: `probe.py http 127.0.0.1:8000 /readyz` or `probe.py grpc 127.0.0.1:50051`.

Owns: nothing. It needs only what the image has anyway: the standard library for HTTP, and the
standard health client for gRPC.
"""

from __future__ import annotations

import http.client
import sys

TIMEOUT_S = 3.0


def http_is_ok(address: str, path: str) -> bool:
    """Tell whether `GET path` answers 200."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    connection.request("GET", path)
    return connection.getresponse().status == http.client.OK


def grpc_is_serving(address: str) -> bool:
    """Tell whether the whole server says SERVING."""
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def main(arguments: list[str]) -> int:
    """Return 0 when healthy, 1 when not, 2 for a wrong command line."""
    match arguments:
        case ["http", address, path]:
            healthy = http_is_ok(address, path)
        case ["grpc", address]:
            healthy = grpc_is_serving(address)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
