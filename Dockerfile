# Two images, both without root:
#   docker build --target full -t bleedwatch:0.1.0 .              all processes: the chart's default
#   docker build --target sidecar -t bleedwatch-sidecar:0.1.0 .   the sidecar alone; no tap
# Push them to your registry, and name them there: `image.repository` of the chart, and `--image` of
# `bleedwatch sidecar manifest`; docs/kubernetes.md has the steps.
# Versions are those of constraints.txt. `make image-steps` takes the same steps without Docker.
ARG PYTHON=python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# The time in archives, so that the same sources make the same wheel: 1980 is the first that they can hold.
ENV SOURCE_DATE_EPOCH=315532800
COPY . /src
RUN python -m venv /opt/build && /opt/build/bin/pip install setuptools==80.9.0
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels /src

FROM build AS install-sidecar
RUN python -m venv --without-pip /opt/bleedwatch
RUN /opt/build/bin/pip --python /opt/bleedwatch/bin/python install --constraint /src/constraints.txt "$(echo /wheels/*.whl)[kv-events]"
RUN /opt/bleedwatch/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/bleedwatch/lib

FROM build AS install-full
RUN python -m venv --without-pip /opt/bleedwatch
RUN /opt/build/bin/pip --python /opt/bleedwatch/bin/python install --constraint /src/constraints.txt "$(echo /wheels/*.whl)[worker,kv-events,api,tap]"
RUN /opt/bleedwatch/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/bleedwatch/lib

FROM ${PYTHON} AS sidecar
COPY --from=install-sidecar /opt/bleedwatch /opt/bleedwatch
ENV PATH=/opt/bleedwatch/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:0
ENTRYPOINT ["bleedwatch"]

FROM ${PYTHON} AS full
COPY --from=install-full /opt/bleedwatch /opt/bleedwatch
ENV PATH=/opt/bleedwatch/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:0
ENTRYPOINT ["bleedwatch"]
