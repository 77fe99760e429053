"""Reading one section's registered options; a bad one is noted, not raised."""

from __future__ import annotations

import re
from typing import Any

from oslo_config import cfg

from designate_pool.config import values
from designate_pool.config.errors import ConfigErrors
from designate_pool.model import Endpoint

#: What to do about a ``$`` that oslo.config could not make sense of.
DOLLAR = "oslo.config takes the $ in it for a reference to another option; write $$ for a $, or file:PATH"


class Section:
    """The options of one group of *conf*."""

    def __init__(self, conf: cfg.ConfigOpts, group: str, mistakes: ConfigErrors) -> None:
        self._options = conf if group == 'DEFAULT' else conf[group]
        self._mistakes = mistakes
        self.name = group

    def __getitem__(self, option: str) -> Any:
        """The value, or None when it is wrong and has been noted."""
        try:
            return self._options[option]
        except cfg.ConfigSourceValueError as error:
            # oslo.config words it "Value for option ... from LocationInfo(...) is not valid: why".
            self.wrong(option, re.split(r'is not valid: ', str(error), maxsplit=1)[-1])
        except cfg.Error:
            self.wrong(option, DOLLAR)
        return None

    def secret(self, option: str) -> Any:
        """A text that may be ``file:PATH`` or ``env:NAME``."""
        return self._made(option, values.secret)

    def endpoints(self, option: str, default_port: int) -> tuple[Endpoint, ...]:
        """At least one address and port; none when it is wrong and has been noted."""
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
