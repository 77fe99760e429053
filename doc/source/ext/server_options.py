"""The directive ``server-options``: what a driver takes in its sections, from the driver's own declaration."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from designate_pool import backends
from designate_pool.config.pools import GENERIC
from designate_pool.model import Option


class ServerOptions(Directive):
    """``.. server-options:: DRIVER``, or without an argument what every server's section takes."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        options = backends.options()[self.arguments[0]] if self.arguments else GENERIC
        section = nodes.container()
        lines = [line for option in options for line in _described(option)]
        self.state.nested_parse(StringList(lines or ['It takes none of its own.'], source='options'), 0, section)
        return [section]


def _described(option: Option) -> list[str]:
    if option.required:
        fate = 'required'
    elif option.default in (None, ''):
        fate = 'optional'
    else:
        fate = f'default ``{str(option.default).lower() if isinstance(option.default, bool) else option.default}``'
    secret = '; a secret, may be ``file:PATH`` or ``env:NAME``' if option.secret else ''
    return [f'``{option.name}`` ({option.kind}, {fate}{secret})',
            f'    {option.help.replace("*", chr(92) + "*")}', '']


def setup(app: Any) -> dict[str, bool]:
    app.add_directive('server-options', ServerOptions)
    return {'parallel_read_safe': True}
