"""`cd hack && python -m kind.sbom IMAGE…`: writes a bill of materials of each image to build/, as CycloneDX JSON."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from kind.engine import EngineError, engine, environment, sh
from kind.images import ROOT

FOLDER = ROOT / "build"

INSIDE = r"""
import json, platform, site, subprocess, sys
from importlib.metadata import distributions

def license(metadata):
    lines = (metadata["License-Expression"] or metadata["License"] or "").splitlines()
    return lines[0] if len(lines) == 1 else ""  # some have the whole text

query = ["dpkg-query", "--show", "--showformat=${Package}\t${Version}\t${Architecture}\n"]
debian = subprocess.run(query, capture_output=True, text=True, check=True).stdout
found = distributions(path=[*sys.path[1:], *site.getsitepackages([sys.base_prefix])])
python = {each.metadata["Name"]: [each.version, license(each.metadata)] for each in found}
system = platform.freedesktop_os_release()["ID"]
print(json.dumps({"python": python, "debian": [line.split("\t") for line in debian.splitlines()], "system": system}))
"""
"""A program for an image's Python that prints the image's packages."""


def packages(image: str) -> list[Any]:
    """The Python and Debian packages of a local image. Raises EngineError."""
    with tempfile.TemporaryDirectory() as folder:
        run = [engine(), "run", "--rm", "--pull=never", "--network=none", "--entrypoint=python3", image, "-c", INSIDE]
        found = json.loads(sh(*run, env=environment(Path(folder))))
    python = [
        _component(PackageURL("pypi", name=name, version=version), terms)
        for name, (version, terms) in found["python"].items()
    ]
    debian = [
        _component(PackageURL("deb", found["system"], name, version, {"arch": architecture}))
        for name, version, architecture in found["debian"]
    ]
    return python + debian


def _component(package: PackageURL, terms: str = "") -> Any:
    return Component(
        name=package.name,
        version=package.version,
        purl=package,
        bom_ref=package.to_string(),
        licenses=[LicenseFactory().make_from_string(terms)] if terms else [],
    )


def bill(image: str) -> Path:
    """Writes the bill of materials of an image and returns its file."""
    whole: Any = Component(name=image, type=ComponentType.CONTAINER)
    parts = packages(image)
    bom: Any = Bom(components=parts, metadata=BomMetaData(component=whole))
    bom.register_dependency(whole, parts)
    file = FOLDER / f"{image.rpartition('/')[2].replace(':', '-')}.cdx.json"
    FOLDER.mkdir(exist_ok=True)
    file.write_text(JsonV1Dot6(bom).output_as_string(indent=1))
    return file


def main() -> int:
    try:
        for image in sys.argv[1:]:
            print(bill(image))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
