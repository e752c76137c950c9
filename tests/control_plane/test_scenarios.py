"""The scenarios of KubeRay's own end-to-end suite for RayJobs, through a TrainJob.

| KubeRay's scenario | here | with pods, in tests/e2e |
|---|---|---|
| success; a later suspend is ignored | test_stories | test_text_job |
| failing application; stopped; broken submitter | test_stories | test_own_functions |
| start deadline; two retries | `test_the_start_deadline_ends_each_attempt` | test_cannot_start |
| cascading deletion; deadline; suspend and resume, created suspended; long name | test_lifecycle, test_stories | |
| head pod deleted | | test_text_job |

No TrainJob leads to a wrong runtime environment, deletion strategies, managedBy or token authentication. A submitter
pod that is deleted or completed by force is KubeRay's own affair: a TrainJob sees its RayJob's status only.
"""

import pytest

from cluster.jobs import Jobs, eventually

pytestmark = pytest.mark.operated


@pytest.mark.parametrize("retries", [0, 2])
def test_the_start_deadline_ends_each_attempt(jobs: Jobs, retries: int):
    """No pod ever starts here."""
    jobs.create(deadlines={"start": "1s"}, retries=retries)
    status = jobs.until(phase="Failed", reason="PreRunningDeadlineExceeded")
    assert status["attempt"] == retries + 1
    eventually(lambda: jobs.events().count("Retrying") == retries)
