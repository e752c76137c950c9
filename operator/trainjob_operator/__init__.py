"""The operator: creates a KubeRay RayJob for each TrainJob and reports its state in the TrainJob's status."""
