# Memex in a container: docker compose up --build, or podman. compose.yaml has the volumes, the secret and the limits.
# The base is any Debian with Python 3.11 or newer: --build-arg BASE=…
ARG BASE=debian:trixie-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
WORKDIR /src
# The libraries, each checked against its hash, are in a separate layer, which a change of Memex does not rebuild.
COPY requirements.txt ./
RUN python3 -m venv /opt/memex && /opt/memex/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps \
    --only-binary :all: --requirement requirements.txt
COPY LICENSE MANIFEST.in README.md memex_vault.py pyproject.toml ./
COPY distribution distribution
COPY index index
COPY mcp_server mcp_server
COPY syncd syncd
COPY vault_fixtures vault_fixtures
RUN /opt/memex/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
    && /opt/memex/bin/pip uninstall --yes setuptools pip

FROM ${BASE}
# libseccomp confines the converter of uploaded files.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git libseccomp2 python3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/memex /opt/memex
COPY --chmod=755 distribution/container.sh /usr/local/bin/memex-container
# Notes that Memex writes belong to this user: make it yours, so that you can edit them.
ARG UID=1000
RUN useradd --uid ${UID} --home-dir /state --shell /usr/sbin/nologin memex \
    && install --directory --owner memex --group memex --mode 700 /state && install --directory --owner memex /vault
USER memex
ENV PATH=/opt/memex/bin:/usr/local/bin:/usr/bin:/bin HOME=/state MEMEX_VAULT=/vault MEMEX_STATE=/state/memex \
    MEMEX_SERVER__HOST=0.0.0.0 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    GLIBC_TUNABLES=glibc.malloc.tcache_count=0
WORKDIR /vault
VOLUME ["/vault", "/state"]
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["memex-container", "health"]
ENTRYPOINT ["memex-container"]
CMD ["serve"]
