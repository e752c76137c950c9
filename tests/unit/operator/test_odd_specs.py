"""Whatever TrainJob the API server may hold: it is read, and rendered or refused in words.

`make soak` tries many more.
"""

import json
from typing import Any

from hypothesis import assume, given
from operator_objects import UID

from control_plane.strategies import trainjobs
from odd_documents import spoiled
from soak import examples
from trainjob_operator.errors import RayJobError
from trainjob_operator.render import render, with_storage
from trainjob_operator.settings import NodePool, Settings
from trainjob_operator.train_job import read_train_job

SETTINGS = Settings(image="trainer", node_pools={name: NodePool() for name in ("a", "x1")})


@examples(60)
@given(spoiled(trainjobs()))
def test_a_trainjob_is_rendered_or_refused(document: Any):
    assume(isinstance(document, dict) and isinstance(document.get("spec"), dict))
    metadata = {"name": "job", "namespace": "team", "uid": UID}
    job, error = read_train_job(
        {**document, "apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": metadata}
    )
    if error is not None:
        assert str(error)
        return
    try:
        ray_job = render(with_storage(job, None, SETTINGS), SETTINGS)
    except RayJobError:
        return
    json.dumps(ray_job, allow_nan=False).encode()
