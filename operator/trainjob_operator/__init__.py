"""The operator: makes a KubeRay RayJob of every TrainJob and tells in the TrainJob's status how it is doing."""
