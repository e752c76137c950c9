#!/usr/bin/env bash
# RDKit's fingerprints of a molecule and of its mirror image are equal, though a drug and its mirror image differ.
#
# Seen with: rdkit 2026.9.1, CPython 3.11.
#
# Hands of a molecule are written in its SMILES (@ and @@), and data sets have both with different labels, as one of
# them binds and the other does not. RDKit's fingerprints leave this out: no model can tell such rows apart, a removal
# of duplicates by fingerprint drops one of two labels, and a similarity of 1 is no proof of the same compound. The
# sides of a double bond are left out, too. Where a fingerprint has includeChirality=True, it does not see all of it: of
# the four below only Morgan's sees both pairs.
#
# Output seen:
#   thalidomide, R and S: MACCS 1.00
#   thalidomide, R and S: Morgan 1.00, includeChirality=True 0.57
#   thalidomide, R and S: AtomPair 1.00, includeChirality=True 1.00
#   thalidomide, R and S: TopologicalTorsion 1.00, includeChirality=True 0.47
#   fumaric and maleic acid: MACCS 1.00
#   fumaric and maleic acid: Morgan 1.00, includeChirality=True 0.43
#   fumaric and maleic acid: AtomPair 1.00, includeChirality=True 1.00
#   fumaric and maleic acid: TopologicalTorsion 1.00, includeChirality=True 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rdkit==2026.9.1

cat > mirror.py <<'PYTHON'
from rdkit.Chem import MolFromSmiles, rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import GetMACCSKeysFingerprint
from rdkit.DataStructs import TanimotoSimilarity

PAIRS = {
    "thalidomide, R and S": ("O=C1CC[C@@H](N2C(=O)c3ccccc3C2=O)C(=O)N1", "O=C1CC[C@H](N2C(=O)c3ccccc3C2=O)C(=O)N1"),
    "fumaric and maleic acid": ("OC(=O)/C=C/C(=O)O", "OC(=O)/C=C\\C(=O)O"),
}
for what, smiles in PAIRS.items():
    pair = [MolFromSmiles(one) for one in smiles]
    print(f"{what}: MACCS {TanimotoSimilarity(*map(GetMACCSKeysFingerprint, pair)):.2f}")
    for name in ("Morgan", "AtomPair", "TopologicalTorsion"):
        make = getattr(rdFingerprintGenerator, f"Get{name}Generator")
        found = []
        for include in (False, True):
            of = make(includeChirality=include).GetFingerprint
            found.append(f"{TanimotoSimilarity(*map(of, pair)):.2f}")
        print(f"{what}: {name} {found[0]}, includeChirality=True {found[1]}")
PYTHON

venv/bin/python mirror.py | tee found
diff seen found
