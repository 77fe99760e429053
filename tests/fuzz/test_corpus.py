"""Every input of the corpus, those that once broke something among them, is read as its target demands."""

from __future__ import annotations

import pathlib

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = pathlib.Path(__file__).parent / 'corpus'


@pytest.mark.parametrize('name', sorted(TARGETS))
def test_the_corpus_is_read(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for each in inputs:
        try:
            TARGETS[name](each.read_bytes())
        except Exception as error:
            raise AssertionError(f'{name}/{each.name}') from error


def test_every_folder_has_its_target() -> None:
    assert {each.name for each in CORPUS.iterdir()} == set(TARGETS)
