"""The table of stories that test_stories plays."""

from stories_of_changes import CHANGES
from stories_of_lives import LIVES

STORIES = {**CHANGES, **LIVES}
