"""`spec.pods` at random."""

import string

from hypothesis import strategies as st

from control_plane.small_strategies import (
    Document,
    booleans,
    label_keys,
    labels,
    merged,
    names,
    one_of,
    part,
    quantities,
)

_selectors = part({"key": names, "operator": st.just("In"), "values": st.lists(names, min_size=1, max_size=2)})
_node_terms = part({"nodeSelectorTerms": st.lists(part(matchExpressions=st.lists(_selectors, max_size=2)), min_size=1)})
_pod_term = part(
    {"topologyKey": st.just("kubernetes.io/hostname")},
    labelSelector=part(matchLabels=labels, matchExpressions=st.lists(_selectors, max_size=1)),
)
_weighted = part({"weight": st.integers(1, 100), "podAffinityTerm": _pod_term})
_pod_affinity = part(
    requiredDuringSchedulingIgnoredDuringExecution=st.lists(_pod_term, max_size=1),
    preferredDuringSchedulingIgnoredDuringExecution=st.lists(_weighted, max_size=1),
)
_affinity = part(
    nodeAffinity=part(requiredDuringSchedulingIgnoredDuringExecution=_node_terms),
    podAffinity=_pod_affinity,
    podAntiAffinity=_pod_affinity,
)
_toleration = part(
    key=names,
    operator=st.just("Exists"),
    effect=st.sampled_from(["NoSchedule", "NoExecute"]),
    tolerationSeconds=st.integers(0, 3600),
)
_key_of = part({"name": names, "key": names}, optional=booleans)
_env = merged(
    part({"name": st.sampled_from(["A", "HF_HOME", "_x1"])}),
    part(value=st.text(string.printable, max_size=9))
    | part(valueFrom=one_of(secretKeyRef=_key_of, configMapKeyRef=_key_of)),
)
_env_from = merged(
    part(prefix=st.just("P_")), one_of(secretRef=part({"name": names}), configMapRef=part({"name": names}))
)
_volume_sources = one_of(
    emptyDir=part(medium=st.just("Memory"), sizeLimit=quantities | st.just(1024)),
    configMap=part({"name": names}, defaultMode=st.integers(0, 0o777)),
    secret=part({"secretName": names}),
    persistentVolumeClaim=part({"claimName": names}, readOnly=booleans),
)
_security = part(
    runAsUser=st.integers(1, 2**31 - 1),
    runAsGroup=st.integers(1, 2**31 - 1),
    fsGroup=st.integers(1, 2**31 - 1),
    runAsNonRoot=st.just(True),
    seccompProfile=st.just({"type": "RuntimeDefault"}),
    supplementalGroups=st.lists(st.integers(1, 65535), max_size=2),
)


@st.composite
def pods(draw: st.DrawFn) -> Document:
    """`pods`, whose mounts are of its volumes."""
    found = draw(
        part(
            image=st.sampled_from(["trainer", "registry.example.com/team/trainer:1.0"]),
            imagePullSecrets=st.lists(part({"name": names}), max_size=2, unique_by=lambda item: item["name"]),
            serviceAccountName=names,
            env=st.lists(_env, max_size=3, unique_by=lambda item: item["name"]),
            envFrom=st.lists(_env_from, max_size=1),
            nodeSelector=labels,
            tolerations=st.lists(_toleration, max_size=2),
            affinity=_affinity,
            schedulerName=names,
            cpuLimits=booleans,
            securityContext=_security,
            labels=labels,
            annotations=st.dictionaries(label_keys, st.text(string.printable, max_size=20), max_size=2),
        )
    )
    volumes = draw(st.lists(names, max_size=2, unique=True))
    if volumes:
        found["volumes"] = [{"name": name, **draw(_volume_sources)} for name in volumes]
        mount = part({"name": st.sampled_from(volumes)}, readOnly=booleans, subPath=st.just("inside"))
        found["volumeMounts"] = [{"mountPath": f"/mnt/{number}", **draw(mount)} for number in range(len(volumes))]
    return found
