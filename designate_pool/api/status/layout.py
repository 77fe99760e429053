"""What every page has: head, skip link, navigation, and tables that fit a narrow screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from designate_pool import __version__
from designate_pool.api.status.html import Content, Html, el, join
from designate_pool.api.status.words import moment


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
    return el('form', el('label', 'Domain ', el('input', type='search', name='name', maxlength='255', required=True,
                                                autocomplete='off', spellcheck='false')),
              el('button', 'Show', type='submit'), action=f'{base}/status/zones', method='get', role='search')


def section(key: str, title: str, *content: Content) -> Html:
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
