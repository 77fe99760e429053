"""Configuration files as text."""

from __future__ import annotations

import itertools
import pathlib
import textwrap
from collections.abc import Callable

import pytest
from oslo_config import cfg

from designate_pool.config import load

Read = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def read(tmp_path: pathlib.Path) -> Read:
    """A function that loads the texts of configuration files."""
    numbers = itertools.count()

    def read(*texts: str, argv: tuple[str, ...] = ()) -> cfg.ConfigOpts:
        paths = []
        for text in texts:
            path = tmp_path / f'{next(numbers)}.conf'
            path.write_text(textwrap.dedent(text))
            paths.append(path)
        conf = cfg.ConfigOpts()
        load.load(conf, [f'--config-file={path}' for path in paths] + list(argv), config_files=[])
        return conf

    return read
