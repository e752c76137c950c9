"""The division of Ray Data's datasets among the workers."""

from copy import deepcopy
from typing import Any

from ray.data import DataIterator, Dataset, ExecutionOptions
from ray.train import DataConfig

EQUALLY = "train"


class DatasetShards(DataConfig):
    """Ray Train's own configuration, but every row of a set to be scored goes to a worker. Of the training set some
    rows are left out, so that each worker has equally many."""

    def __init__(self, split: list[str], options: ExecutionOptions) -> None:
        super().__init__(datasets_to_split=split, execution_options=options)
        self._complete = {name for name in split if name != EQUALLY}
        self._options = options

    def configure(
        self, datasets: dict[str, Dataset], world_size: int, worker_handles: Any, worker_node_ids: Any, **more: Any
    ) -> list[dict[str, DataIterator]]:
        others = {name: dataset for name, dataset in datasets.items() if name not in self._complete}
        shards = super().configure(others, world_size, worker_handles, worker_node_ids, **more)
        for name in datasets.keys() & self._complete:
            dataset = Dataset.copy(datasets[name])
            dataset.context.execution_options = deepcopy(self._options)
            for shard, iterator in zip(shards, dataset.streaming_split(world_size, equal=False), strict=True):
                shard[name] = iterator
        return shards
