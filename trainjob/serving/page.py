"""The page to try a model on: it loads nothing from elsewhere, and works without the internet."""

from pathlib import Path

from trainjob.data import Preprocessor
from trainjob.kinds import KINDS
from trainjob.report.templates import template
from trainjob.serving.limits import MAX_BODY_BYTES
from trainjob.serving.requests import most_rows

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}


def page(name: str, preprocessor: Preprocessor) -> str:
    """The page of the model `name`, in HTML."""
    return template("page.html.j2", Path(__file__).parent).render(
        name=name,
        noun=KINDS[preprocessor.kind].a_noun,
        sizes=preprocessor.target.sizes(),
        label=preprocessor.target.label_name,
        form_fields=preprocessor.input.form_fields,
        example=preprocessor.input.example(),
        most_rows=most_rows(preprocessor),
        most_bytes=MAX_BODY_BYTES,
    )
