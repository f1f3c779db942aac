# syntax=docker/dockerfile:1
# The edge: WebSocket for clients, gRPC to the services. No model library in it.
# Build from the repository root: docker build -f deploy/edge.Dockerfile -t weir-edge .

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/weir
COPY pyproject.toml README.md LICENSE ./
COPY contracts contracts
COPY services services
RUN --mount=type=cache,target=/root/.cache/pip /opt/weir/bin/pip install ".[edge]"

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin weir
COPY --from=build /opt/weir /opt/weir
COPY deploy/probe.py /opt/weir/probe.py
ENV PATH=/opt/weir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    EDGE_HOST=0.0.0.0 \
    EDGE_PORT=8000
# An empty folder: `python -m` looks for modules in the working directory first.
WORKDIR /var/empty
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --start-interval=1s --retries=3 \
    CMD ["python", "/opt/weir/probe.py", "http", "127.0.0.1:8000", "/readyz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "services.edge"]
