# Two images: `docker build --target operator .` and `docker build --target trainer .`
# Layers are ordered by how rarely they change: a change of code rebuilds only each image's last layer, and the package
# layer is rebuilt only if its packages change. The digest is that of the multi-platform image.
ARG BASE_IMAGE=python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff


FROM ${BASE_IMAGE} AS base
LABEL org.opencontainers.image.title="trainjob" \
      org.opencontainers.image.description="Train a model from one YAML file, on this machine or on a Kubernetes cluster" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/trainjob/bin:$PATH \
    UV_NO_CACHE=1 \
    VIRTUAL_ENV=/opt/trainjob
RUN useradd --uid 1000 --user-group --create-home trainjob
WORKDIR /src


# The packages of each image with versions and digests, and those of PyTorch. Most changes of pyproject.toml and locked.txt
# do not affect them.
FROM base AS requirements
COPY pyproject.toml locked.txt ./
# Index of another PyTorch build, such as for CPUs or ROCm. Its digests are unknown and not verified.
ARG TORCH_INDEX=
RUN python3 -m venv /opt/uv \
 && mkdir /requirements \
 && sed -n '/^uv==/,/[^\\]$/p' locked.txt > /requirements/uv.txt \
 && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement /requirements/uv.txt \
 && grep -o '^[^ ]*==[^ ]*' locked.txt > constraints.txt \
 && compile="/opt/uv/bin/uv pip compile --quiet --no-header --no-annotate --constraints constraints.txt" \
 && $compile pyproject.toml --extra operator --output-file operator.txt \
 && compile="$compile ${TORCH_INDEX:+--index ${TORCH_INDEX}}" \
 && echo torch | $compile - --output-file torch.txt \
 && $compile pyproject.toml --extra train --extra compress --extra serve --extra head --extra mlflow \
    --output-file trainer.txt \
 && for packages in operator torch trainer; do \
      awk 'NR == FNR { wanted[$1]; next } /^[^ ]/ { chosen = $1 in wanted } chosen' $packages.txt locked.txt \
        > /requirements/$packages.txt; \
    done \
 && if [ "${TORCH_INDEX}" ]; then cp torch.txt trainer.txt /requirements/; fi


FROM requirements AS code
RUN python3 -m venv --without-pip /opt/trainjob
COPY README.md LICENSE ./
COPY trainjob trainjob
COPY operator operator
RUN /opt/uv/bin/uv pip install --compile-bytecode --no-deps --build-constraints locked.txt --prefix /code .


FROM base AS trainer
# KubeRay's probes and submitter need bash and wget; ps and pip are for users. Git fetches spec.code.git. NCCL needs
# libibverbs and its providers for InfiniBand and RoCE; torch.compile and Triton need g++ and gcc.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bash g++ git ibverbs-providers libibverbs1 procps wget \
 && rm -rf /var/lib/apt/lists/*
# PyTorch with CUDA is most of the image and has a layer of its own, which another version of another package leaves alone.
COPY --from=requirements /requirements/uv.txt /requirements/torch.txt ./
ARG TORCH_INDEX=
RUN python3 -m venv /opt/trainjob \
 && python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement uv.txt \
 && verified=$([ "${TORCH_INDEX}" ] || echo --require-hashes) \
 && /opt/uv/bin/uv pip install --compile-bytecode $verified --requirements torch.txt ${TORCH_INDEX:+--index ${TORCH_INDEX}} \
 && rm -r /opt/uv
COPY --from=requirements /requirements/trainer.txt ./
RUN python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement uv.txt \
 && verified=$([ "${TORCH_INDEX}" ] || echo --require-hashes) \
 && /opt/uv/bin/uv pip install --compile-bytecode $verified --requirements trainer.txt ${TORCH_INDEX:+--index ${TORCH_INDEX}} \
 && rm -r /opt/uv
COPY --from=code /code /opt/trainjob
COPY --chmod=755 trainjob/launch/fast/ray_health_check.sh /opt/quick/ray
# Huge pages for PyTorch's large arrays: see docs/decisions/huge-pages.md
ENV PATH=/opt/quick:$PATH \
    RAY_USAGE_STATS_ENABLED=0 \
    THP_MEM_ALLOC_ENABLE=1
USER 1000:1000
WORKDIR /home/trainjob
CMD ["trainjob", "--help"]


FROM base AS operator
COPY --from=requirements /requirements/uv.txt /requirements/operator.txt ./
# Importing the operator's modules compiles only these; compiling the whole Kubernetes client would take 60 MB more.
RUN python3 -m venv --without-pip /opt/trainjob \
 && python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement uv.txt \
 && /opt/uv/bin/uv pip install --require-hashes --requirements operator.txt \
 && rm -r /opt/uv \
 && python3 -c 'import apprise, kopf, kubernetes.aio.client, prometheus_client, typer; apprise.Apprise().add("json://host")'
COPY --from=code /code /opt/trainjob
USER 1000:1000
WORKDIR /home/trainjob
ENTRYPOINT ["trainjob-operator"]
