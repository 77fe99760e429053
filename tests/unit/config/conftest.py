"""Configuration files as text, and drivers that no real server is behind."""

from __future__ import annotations

import itertools
import pathlib
import textwrap
from collections.abc import Callable

import pytest
from oslo_config import cfg

from designate_pool.config import load
from designate_pool.model import Option

DRIVERS = {
    'bind9': (
        Option('rndc_port', 'The port of rndc.', kind='port', default=953),
        Option('rndc_key', 'The key of rndc.', kind='tsig_key', required=True, secret=True),
        Option('view', 'The view.', kind='str'),
    ),
    'powerdns': (
        Option('api_key', 'The key of the API.', secret=True, required=True),
        Option('verify', 'Check the certificate.', kind='bool', default=True),
        Option('weight', 'Any number.', kind='float', default=0.5, minimum=0, maximum=1),
        Option('retries', 'A whole number.', kind='int', default=2, minimum=0),
        Option('folder', 'A folder.', kind='path'),
        Option('also', 'More addresses.', kind='endpoints'),
    ),
    'fake': (),
}

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
