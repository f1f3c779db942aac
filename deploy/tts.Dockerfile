# syntax=docker/dockerfile:1
# The speech service with the embedded voices. It runs on CPU; no torch in it.
# Build from the repository root: docker build -f deploy/tts.Dockerfile -t weir-tts .
# The target `models` is the same image with npm beside pip; it fills the volume of voices.

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/weir
COPY pyproject.toml README.md LICENSE ./
COPY contracts contracts
COPY services services
RUN --mount=type=cache,target=/root/.cache/pip /opt/weir/bin/pip install ".[tts,embedded]"

FROM python:3.11-slim-bookworm AS runtime
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin weir \
    && install --directory --owner=10001 --group=10001 /models
COPY --from=build /opt/weir /opt/weir
COPY deploy/probe.py /opt/weir/probe.py
ENV PATH=/opt/weir/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TTS_HOST=0.0.0.0 \
    TTS_PORT=50051 \
    TTS_MODEL_DIR=/models
# An empty folder: `python -m` looks for modules in the working directory first.
WORKDIR /var/empty

FROM runtime AS models
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends npm \
    && rm -rf /var/lib/apt/lists/*
# The root file system is read-only, and the user has no home.
ENV HOME=/tmp
USER 10001:10001
ENTRYPOINT ["python", "-m", "services.tts.models"]
CMD ["fetch"]

FROM runtime AS service
USER 10001:10001
VOLUME /models
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=1s --retries=3 \
    CMD ["python", "/opt/weir/probe.py", "grpc", "127.0.0.1:50051"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "services.tts"]
