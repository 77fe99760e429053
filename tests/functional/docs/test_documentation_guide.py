"""Every command of the operator's guide, run as a reader would, each page in a network of its own.

Two processes share the pages: the others are those of ``test_documentation_guide_more``.
"""

from __future__ import annotations

import pathlib

import pytest

from tests.fixtures import documentation


@pytest.mark.parametrize('page', documentation.pages('guide')[::2], ids=documentation.name)
def test_what_a_page_tells_to_do_does_what_the_page_says(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    documentation.check(page, tmp_path)
