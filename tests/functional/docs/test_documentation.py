"""Every command of the documentation for users, run as a reader would, each page in a network of its own.

Those for operators are in ``test_documentation_guide`` and ``test_documentation_servers``, the one for authors of
drivers in ``tests/test_wheel.py``.
"""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.fixtures import documentation
from tests.fixtures.documentation import PAGES, ROOT, Shell, blocks, part, tell


@pytest.mark.parametrize('page', documentation.pages('use'), ids=documentation.name)
def test_what_a_page_tells_to_do_does_what_the_page_says(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    documentation.check(page, tmp_path)


@pytest.mark.parametrize('said', ['$ echo two\n   one', '$ false', '$ false\n   $ echo $?\n   0'])
def test_a_page_that_is_not_true_fails(said: str, tmp_path: pathlib.Path) -> None:
    page = ROOT / 'doc' / 'source' / f'{tmp_path.name}.rst'
    shell = Shell(tmp_path)
    try:
        with pytest.raises(AssertionError, match=page.name):
            tell(shell, tmp_path, page, f'.. code-block:: console\n\n   {said}\n')
    finally:
        shell.close()


def test_every_page_is_run_by_one_of_the_tests() -> None:
    told = [ROOT / 'README.md', *(page for page in PAGES.rglob('*.rst')
                                  if any(block.kind == 'console' for block in blocks(page)))]
    assert {part(page) for page in told} == {'use', 'guide', 'servers', 'driver'}
    tests = [*pathlib.Path(__file__).parent.glob('test_documentation*.py'), ROOT / 'tests' / 'test_wheel.py']
    files = '\n'.join(path.read_text() for path in tests)
    assert set(re.findall(r"documentation\.pages\('(\w+)'\)", files)) == {'use', 'guide', 'servers', 'driver'}


def test_make_has_every_target_that_is_told_of() -> None:
    targets = set(re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(), re.M))
    told = {found[1] for page in (ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', PAGES / 'contributor' / 'testing.rst')
            for found in re.finditer(r'make ([\w-]+)', page.read_text()) if found[1].islower()}
    assert told and told <= targets
