# syntax=docker/dockerfile:1
# The video service with the adapter `pattern`. It runs on CPU; no torch in it.
# Build from the repository root: docker build -f deploy/video.Dockerfile -t weir-video .

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/weir
COPY pyproject.toml README.md LICENSE ./
COPY contracts contracts
COPY services services
RUN --mount=type=cache,target=/root/.cache/pip /opt/weir/bin/pip install ".[video]"

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin weir
COPY --from=build /opt/weir /opt/weir
COPY deploy/probe.py /opt/weir/probe.py
ENV PATH=/opt/weir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    VIDEO_HOST=0.0.0.0 \
    VIDEO_PORT=50052 \
    VIDEO_ADAPTER=pattern
# An empty folder: `python -m` looks for modules in the working directory first.
WORKDIR /var/empty
USER 10001:10001
EXPOSE 50052
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=1s --retries=3 \
    CMD ["python", "/opt/weir/probe.py", "grpc", "127.0.0.1:50052"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "services.video"]
