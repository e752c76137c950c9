"""`cd hack && python -m kind up | install | down`: a complete development cluster."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster.client import Cluster, KubectlError
from kind.cluster import REGISTRY, KindCluster
from kind.engine import EngineError
from kind.images import build
from kind.install import install

USAGE = """\
python -m kind up        a kind cluster with registry, KubeRay, MinIO and the chart, made of this checkout
python -m kind install   the same on the cluster of $KUBECONFIG; images go to the registry $REGISTRY
python -m kind down      removes the kind cluster"""


def main() -> int:
    try:
        match sys.argv[1:]:
            case ["up"]:
                cluster = KindCluster()
                cluster.make_room()
                cluster.serve_images()
                with ThreadPoolExecutor() as threads:  # each leaves a core idle for half of its minutes
                    nodes = threads.submit(cluster.node_image)
                    images = build(REGISTRY)
                cluster.up(images.trainer, nodes.result())
                install(cluster, images)
                cluster.pull(images.trainer)
                print(f"export KUBECONFIG={cluster.kubeconfig}")
            case ["install"]:
                install(Cluster(Path(os.environ["KUBECONFIG"])), build(os.environ["REGISTRY"]))
            case ["down"]:
                KindCluster().down()
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except (EngineError, KubectlError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
