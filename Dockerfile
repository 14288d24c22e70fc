# The online ranking service: rankwise serve, without root, with every kernel compiled beforehand.
#
#   docker build -t rankwise .
#   docker run --rm --network host rankwise
#   docker run --rm -v rankwise-state:/state rankwise --new-token shop:rank,feedback --tokens /state/tokens
#   docker run -p 8000:8000 -v rankwise-state:/state -v ./models:/models:ro rankwise \
#       /models/news.rankwise --state /state/state.db --host 0.0.0.0 --tokens /state/tokens
#
# The first run is the demonstration, which serves this machine alone. The others make a token and serve a model of yours.

FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md CHANGELOG.md LICENSE requirements.lock requirements-dev.lock ./
COPY wheels ./wheels
COPY src ./src
# What the service adds is in the developers' lock, whose versions hold here as well.
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && sed -n '/==/s/ \\$//p' requirements-dev.lock > versions.txt \
 && /venv/bin/pip install --no-cache-dir --constraint versions.txt ".[serve]"

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 rankwise && mkdir /state && chown rankwise /state
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH RANKWISE_CACHE_DIR=/home/rankwise/.cache/rankwise PYTHONUNBUFFERED=1
USER rankwise
# Kernels are compiled for the processor that builds: build where the same kind of processor runs, or compile at the start.
RUN rankwise warm SLAMPerceptron MaxPairPerceptron OnlineRanker Scorer evaluate
WORKDIR /state
VOLUME /state
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["rankwise", "serve"]
CMD ["--demo"]
