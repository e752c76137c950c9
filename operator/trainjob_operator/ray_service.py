"""Renders the RayService that serves a TrainJob's model."""

from collections.abc import Mapping
from math import ceil

import yaml

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob_operator.names import NAME_ANNOTATION, SERVES_LABEL, ray_job_name
from trainjob_operator.network_policy import authentication
from trainjob_operator.pods import HEAD_START, RAY_START, resources, serving_spec
from trainjob_operator.settings import NodePool, Settings


def ray_service(
    job: TrainJob, settings: Settings, cpus: float, serve_config: KubernetesObject, environment: Mapping[str, str]
) -> KubernetesObject:
    """A RayService with one worker pod like the job's own, but with `cpus` cores and outside of node pools.
    `serve_config` deploys one replica on it; all pods get the variables in `environment`."""
    workers, defaults = job.spec.workers, settings.defaults
    memory = workers.memory or defaults.worker_memory
    worker = resources(cpus, memory, workers.gpus, NodePool().gpu_resource)
    name = ray_job_name(job.metadata.name)
    metadata = {"labels": job.spec.pods.labels | {SERVES_LABEL: name}, "annotations": job.spec.pods.annotations}
    named = {"name": name, "annotations": {NAME_ANNOTATION: job.metadata.name}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": named | ({"namespace": job.metadata.namespace} if job.metadata.namespace else {}),
        "spec": {
            "serveConfigV2": yaml.safe_dump(serve_config, sort_keys=False, allow_unicode=True),
            "rayClusterConfig": authentication(settings.network)
            | {
                "rayVersion": settings.ray_version,
                "headGroupSpec": {
                    "rayStartParams": HEAD_START,
                    "template": {
                        "metadata": metadata,
                        "spec": serving_spec(
                            job, settings, "ray-head", resources(defaults.head.cpus, defaults.head.memory), environment
                        ),
                    },
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "workers",
                        "replicas": 1,
                        "minReplicas": 1,
                        "maxReplicas": 1,
                        "rayStartParams": RAY_START | {"num-cpus": str(ceil(cpus)), "num-gpus": str(workers.gpus)},
                        "template": {
                            "metadata": metadata,
                            "spec": serving_spec(job, settings, "ray-worker", worker, environment),
                        },
                    }
                ],
            },
        },
    }
