"""Small copies of images."""

import io

from trainjob.data.read.pictures import Picture

SIDE = 128
"""Most pixels of a thumbnail's width and height."""


def thumbnail(picture: Picture) -> bytes:
    """A JPEG file of a few KB. Raises DataError for an image that is damaged."""
    image = picture.decoded(picture.channels)
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.save(content, "JPEG")
    return content.getvalue()
