"""One rank of a plain loop that trains a small CNN on image files, decoded by torchvision when they are needed.

`torchrun images.py FOLDER WRITTEN SIDE EPOCHS BATCH`: rank 0 writes the time of the first step to WRITTEN.
"""

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision.io import ImageReadMode, decode_image  # pyrefly: ignore[missing-import]
from torchvision.transforms.v2 import functional  # pyrefly: ignore[missing-import]


class Images(Dataset[tuple[Tensor, int]]):
    def __init__(self, folder: Path, side: int) -> None:
        self.files, self.side = sorted(folder.glob("*/*.jpg")), side
        self.classes = sorted({file.parent.name for file in self.files})

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        pixels = decode_image(str(self.files[index]), ImageReadMode.RGB)
        resized = functional.resize(pixels, [self.side, self.side], antialias=True)
        return resized.float() / 127.5 - 1, self.classes.index(self.files[index].parent.name)


def block(channels: int, out: int) -> list[nn.Module]:
    """Two convolutions, as in trainjob's CNN."""
    convolutions = [(channels, out), (out, out)]
    layers = [[nn.Conv2d(*pair, 3, padding=1, bias=False), nn.BatchNorm2d(pair[1]), nn.ReLU()] for pair in convolutions]
    return [*(layer for some in layers for layer in some), nn.MaxPool2d(2)]


def main(folder: Path, written: Path, side: int, epochs: int, batch: int) -> None:
    dist.init_process_group("gloo")
    train, valid = Images(folder / "train", side), Images(folder / "valid", side)
    torch.manual_seed(0)
    network = nn.Sequential(
        *block(3, 32), *block(32, 64), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(64 * 64, 128), nn.ReLU(),
        nn.Linear(128, len(train.classes)),
    )  # fmt: skip
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(train)
    rows = DataLoader(train, batch // dist.get_world_size(), sampler=sampler)
    scored = DataLoader(valid, batch, sampler=DistributedSampler(valid, shuffle=False))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in rows:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if not written.exists() and dist.get_rank() == 0:
                written.write_text(str(time.time()))
        model.eval()
        with torch.inference_mode():
            right = sum((model(images).argmax(1) == labels).sum() for images, labels in scored)
        total = torch.as_tensor(right)
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}: accuracy {total.item() / len(valid):.3f}", file=sys.stderr)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
