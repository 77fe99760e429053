"""HTML without injection: every text that is not made here is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any, Union

#: Elements without contents.
_VOID = {'input', 'link', 'meta'}
_VOID_OF_SVG = {'circle', 'line', 'path'}


class Html(str):
    """A text that is HTML already; only :func:`el` and :func:`join` make it."""


Content = Union[str, int, Html, None, Iterable['Content']]


def el(tag: str, *content: Content, **attributes: Any) -> Html:
    """An element.

    :param content: None is left out, lists are flattened, and every text but :class:`Html` is escaped
    :param attributes: ``class_`` is ``class`` and ``aria_label`` is ``aria-label``; True is an attribute without a
        value, None and False are none
    """
    shown = ''.join(_attribute(name.rstrip('_').replace('_', '-'), value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f'<{tag}{shown}>')
    if tag in _VOID_OF_SVG:
        return Html(f'<{tag}{shown}/>')
    return Html(f'<{tag}{shown}>{join(*content)}</{tag}>')


def join(*content: Content) -> Html:
    """The concatenated pieces."""
    return Html(''.join(_text(child) for child in content))


def _text(content: Content) -> str:
    if content is None:
        return ''
    if isinstance(content, Html):
        return content
    if isinstance(content, (str, int)):
        return html.escape(str(content))
    return ''.join(_text(child) for child in content)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ''
    return f' {name}' if value is True else f' {name}="{html.escape(str(value))}"'
