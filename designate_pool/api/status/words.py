"""Times and states as the pages show them."""

from __future__ import annotations

from datetime import datetime, timezone

from designate_pool.api.status.html import Html, el

_UNITS = ((86400.0, 'd'), (3600.0, 'h'), (60.0, 'min'))
#: The CSS class of a state.
_MARKS = {'ACTIVE': 'good', 'SUCCESS': 'good', 'UP': 'good', 'active': 'good', 'NONE': 'quiet', 'PENDING': 'busy',
          'joining': 'busy', 'draining': 'busy', 'WARNING': 'busy', 'maintenance': 'quiet', 'removed': 'quiet',
          'DELETED': 'quiet', 'ERROR': 'bad', 'DIVERGED': 'bad', 'DOWN': 'bad'}


def moment(value: datetime | None) -> Html:
    """A time in UTC."""
    if value is None:
        return el('span', '–')
    shown = value.astimezone(timezone.utc)
    return el('time', shown.strftime('%Y-%m-%d %H:%M:%S'), datetime=shown.isoformat(timespec='milliseconds'))


def read_moment(text: str | None) -> datetime | None:
    """A time as the API writes it: in UTC, without a time zone."""
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


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
    return '–' if value is None else str(value)
