"""Writes the data of dials.yaml: drawings of dials, and a table with the angle of each one's hand."""

import argparse
import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIDE = 32
LARGEST_ANGLE = 270.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "dials")
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = np.random.default_rng(arguments.seed)
    for name, rows in (("train", arguments.rows), ("test", arguments.rows // 5)):
        folder = arguments.output / name
        folder.mkdir(parents=True, exist_ok=True)
        angles = chance.uniform(0, LARGEST_ANGLE, rows).round(1)
        with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["file_name", "angle"])
            for number, angle in enumerate(angles.tolist()):
                dial(angle, chance).save(folder / f"{number:04}.png")
                table.writerow([f"{number:04}.png", angle])
        print(f"{folder}: {rows:,} dials")


def dial(angle: float, chance: np.random.Generator) -> Image.Image:
    """A dial whose hand is turned clockwise by so many degrees, at a random place and on noise."""
    image = Image.fromarray(chance.integers(0, 60, (SIDE, SIDE)).astype(np.uint8))
    x, y = SIDE / 2 + chance.uniform(-3, 3, 2)
    length, turned = chance.uniform(9, 12), np.radians(angle)
    draw = ImageDraw.Draw(image)
    draw.ellipse([x - 12, y - 12, x + 12, y + 12], outline=140)
    draw.line([x, y, x + length * np.sin(turned), y - length * np.cos(turned)], fill=255, width=2)
    return image


if __name__ == "__main__":
    main()
