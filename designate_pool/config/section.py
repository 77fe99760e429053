"""Reading the registered options of one section; a wrong value is noted, not raised."""

from __future__ import annotations

import re
from typing import Any

from oslo_config import cfg

from designate_pool.config import values
from designate_pool.config.errors import ConfigErrors
from designate_pool.model import Endpoint

#: Advice for a ``$`` that oslo.config cannot resolve.
DOLLAR = "oslo.config reads the $ in it as a reference to another option; write $$ for a $, or file:PATH"


class Section:
    """The options of one group of *conf*."""

    def __init__(self, conf: cfg.ConfigOpts, group: str, mistakes: ConfigErrors) -> None:
        self._options = conf if group == 'DEFAULT' else conf[group]
        self._mistakes = mistakes
        self.name = group

    def __getitem__(self, option: str) -> Any:
        """The value; None if it is wrong, which is noted."""
        try:
            return self._options[option]
        except cfg.ConfigSourceValueError as error:
            # The text is "Value for option ... from LocationInfo(...) is not valid: why".
            self.wrong(option, re.split(r'is not valid: ', str(error), maxsplit=1)[-1])
        except cfg.Error:
            self.wrong(option, DOLLAR)
        return None

    def secret(self, option: str) -> Any:
        """A text, which may be read from ``file:PATH`` or ``env:NAME``."""
        return self._made(option, values.secret)

    def endpoints(self, option: str, default_port: int) -> tuple[Endpoint, ...]:
        """One or more addresses with ports; empty if the value is wrong, which is noted."""
        return self._made(option, lambda text: values.endpoints(text, default_port)) or ()

    def wrong(self, option: str, why: str) -> None:
        self._mistakes.add(self.name, option, why)

    def _made(self, option: str, make: Any) -> Any:
        text = self[option]
        if text is None:
            return None
        try:
            return make(text)
        except ValueError as error:
            self.wrong(option, str(error))
            return None
