#!/usr/bin/env bash
# trimesh drops and merges vertices of a mesh while it loads it: labels of the file's vertices belong to others.
#
# Seen with: trimesh 5.2.0, numpy 2.4.6, CPython 3.11.
#
# Data sets of body parts, teeth or landmarks have a mesh in one file and a label or a position for each vertex, by its
# number, in another. load removes vertices that no face uses, and joins those at one place, as at the seams of
# textures; the later ones move up. Where nothing is removed, numbers stay, so that most files work. process=False keeps
# all of a PLY file; for OBJ it must be maintain_order=True as well.
#
# Output seen:
#   mesh.ply, {}: 4 of 6 vertices, label at the ankle's place: toe
#   mesh.ply, {'process': False}: 6 of 6 vertices, label at the ankle's place: ankle
#   mesh.ply, {'process': False, 'maintain_order': True}: 6 of 6 vertices, label at the ankle's place: ankle
#   mesh.obj, {}: 4 of 6 vertices, label at the ankle's place: toe
#   mesh.obj, {'process': False}: 5 of 6 vertices, label at the ankle's place: toe
#   mesh.obj, {'process': False, 'maintain_order': True}: 6 of 6 vertices, label at the ankle's place: ankle
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check trimesh==5.2.0 numpy==2.4.6

cat > labels.py <<'PYTHON'
import numpy as np
import trimesh

VERTICES = [[0, 0, 0], [9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]
FACES = [[5, 4, 2], [3, 2, 0]]
LABELS = ["heel", "landmark", "toe", "ankle", "heel", "knee"]

trimesh.Trimesh(VERTICES, FACES, process=False).export("mesh.ply")
with open("mesh.obj", "w") as file:
    file.writelines(f"v {x} {y} {z}\n" for x, y, z in VERTICES)
    file.writelines(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in FACES)
for name in ("mesh.ply", "mesh.obj"):
    for kwargs in ({}, {"process": False}, {"process": False, "maintain_order": True}):
        vertices = trimesh.load(name, **kwargs).vertices
        place = np.array([0, 1, 0])
        found = [LABELS[number] for number in np.flatnonzero((vertices == place).all(axis=1))]
        print(f"{name}, {kwargs}: {len(vertices)} of 6 vertices, label at the ankle's place: {' '.join(found)}")
PYTHON

venv/bin/python labels.py | tee found
diff seen found
