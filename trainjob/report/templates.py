"""HTML and Markdown made from templates."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape

from trainjob.evaluation.scores.base import SECTIONS
from trainjob.report.formatting import FILTERS

HERE = Path(__file__).parent


def template(name: str, folder: Path = HERE) -> Template:
    """The template in the file `name` of `folder`, which may include those of SECTIONS. Values are escaped in HTML."""
    environment = Environment(
        loader=FileSystemLoader([folder, SECTIONS]),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment.get_template(name)
