"""How many workers Ray Train starts: always as many as the TrainJob says."""

from ray.train.v2._internal.execution.scaling_policy import FixedScalingPolicy


class SilentPolicy(FixedScalingPolicy):
    """Ray Train's own policy, but it tells nobody what room the workers want: that would start a process and wait for
    it. Only for a cluster that does not grow, and where Ray Data takes no room. Lives in Ray Train's controller."""

    def _send_resource_request(self) -> None:
        pass

    def _maybe_send_resource_request(self) -> None:
        pass

    def _cancel_resource_request(self) -> None:
        pass
