"""HTML without injection: every text that is not made here is escaped; times, states and the frame of the pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, Union

from designate_pool import __version__

#: Elements without contents.
_VOID = {'input', 'link', 'meta'}
_VOID_OF_SVG = {'circle', 'line', 'path'}
_UNITS = ((86400.0, 'd'), (3600.0, 'h'), (60.0, 'min'))
#: The CSS class of a state.
_MARKS = {'ACTIVE': 'good', 'SUCCESS': 'good', 'UP': 'good', 'active': 'good', 'NONE': 'quiet', 'PENDING': 'busy',
          'joining': 'busy', 'draining': 'busy', 'WARNING': 'busy', 'maintenance': 'quiet', 'removed': 'quiet',
          'DELETED': 'quiet', 'ERROR': 'bad', 'DIVERGED': 'bad', 'DOWN': 'bad'}


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


def moment(value: datetime | None) -> Html:
    """A time in UTC."""
    if value is None:
        return el('span', '–')
    shown = value.astimezone(timezone.utc)
    return el('time', shown.strftime('%Y-%m-%d %H:%M:%S'), datetime=shown.isoformat(timespec='milliseconds'))


def span(seconds: float) -> str:
    """A duration in a fitting unit, without a line break."""
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return f'{seconds * 1000:.0f}\N{NO-BREAK SPACE}ms'
    size, unit = next((scale for scale in _UNITS if seconds >= scale[0]), (1.0, 's'))
    return f'{seconds / size:.1f}\N{NO-BREAK SPACE}{unit}'


def age(since: datetime | None, now: datetime) -> str:
    """The time since a moment, or a dash where there is none."""
    return '–' if since is None else span((now - since).total_seconds())


def until(then: datetime | None, now: datetime) -> str:
    """The time until a moment, or a dash where there is none."""
    if then is None:
        return '–'
    seconds = (then - now).total_seconds()
    return 'now' if seconds <= 0 else f'in {span(seconds)}'


def state(word: str) -> Html:
    """A state, marked by colour as well."""
    return el('span', word, class_=f'state {_MARKS.get(word, "quiet")}')


def number(value: int | None) -> str:
    """A number, or a dash where there is none."""
    return '–' if value is None else str(value)


def page(title: str, base: str, now: datetime, *content: Content, refresh: bool = True) -> str:
    """A whole page.

    :param base: the path under which the API is mounted
    :param refresh: whether the script may fetch it again
    """
    return '<!doctype html>\n' + el(
        'html',
        el('head', el('meta', charset='utf-8'), el('title', title), el('meta', name='viewport',
                                                                       content='width=device-width, initial-scale=1'),
           el('meta', name='color-scheme', content='light dark'), el('link', rel='icon', href='data:,'),
           el('link', rel='stylesheet', href=f'{base}/status/style.css'),
           el('script', src=f'{base}/status/refresh.js', defer=True) if refresh else None),
        el('body', el('a', 'Skip to the contents', href='#main', class_='skip'),
           el('header', el('nav', el('a', 'Pool', href=f'{base}/status'), _search(base), aria_label='Pages')),
           el('main', *content, id='main', tabindex='-1'),
           el('footer', el('p', 'As of ', moment(now), ' UTC. Every time is in UTC. designate-pool ', __version__,
                           id='as-of'))),
        lang='en') + '\n'


def _search(base: str) -> Html:
    return el('form', el('label', 'Zone ', el('input', type='search', name='name', maxlength='255', required=True,
                                              autocomplete='off', spellcheck='false')),
              el('button', 'Show', type='submit'), action=f'{base}/status/zones', method='get', role='search')


def section(key: str, title: str, *content: Content) -> Html:
    """A section with a heading; links lead to it by *key*."""
    return el('section', el('h2', title, id=f'{key}-title'), *content, aria_labelledby=f'{key}-title', id=key)


def table(key: str, caption: str, head: Sequence[str], rows: Sequence[Sequence[Content]], numbers: Sequence[int] = (),
          empty: str = 'None.') -> Html:
    """A table whose first column names the rows; where it is too wide it scrolls within itself.

    :param numbers: the columns that hold numbers
    :param empty: what stands in its place when it has no rows
    """
    if not rows:
        return el('p', empty)

    def kind(column: int) -> str | None:
        return 'number' if column in numbers else None

    shown = [el('tr', *(el('td' if column else 'th', cell, scope=None if column else 'row', class_=kind(column))
                        for column, cell in enumerate(row))) for row in rows]
    return el('div', el('table', el('caption', el('span', caption), id=f'{key}-caption'),
                        el('thead', el('tr', *(el('th', name, scope='col', class_=kind(column))
                                               for column, name in enumerate(head)))),
                        el('tbody', *shown)),
              class_='scroll', role='region', aria_labelledby=f'{key}-caption', tabindex='0')


def facts(*pairs: tuple[str, Content]) -> Html:
    """Names and values."""
    return el('dl', *(join(el('dt', name), el('dd', value)) for name, value in pairs))
