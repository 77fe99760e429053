"""A comparison of what a server has with what it should have, as text.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from designate_pool.cli.http.errors import Json

#: Zones of each kind that are named unless all are asked for.
SOME = 20


def result(found: Json, server: Json) -> Json:
    """The answer of ``/v2/servers/{id}/resync``, for machines."""
    shown = ('total', 'missing', 'behind', 'extra', 'extra_complete', 'other', 'unchecked', 'mending', 'deleted')
    return {'server': server['name'], **{name: found[name] for name in shown}}


def text(compared: Json, limit: int | None) -> str:
    """
    :param compared: see :func:`result`
    :param limit: how many zones of each kind to name; None for all
    """
    return '\n'.join(_lines(compared, limit)) + '\n'


def _lines(compared: Json, limit: int | None) -> Iterator[str]:
    missing, behind, extra, other = compared['missing'], compared['behind'], compared['extra'], compared['other'] or ()
    if not missing and not behind:
        how = 'at their serials' if other or compared['unchecked'] else 'up to date'
        yield f'{compared["server"]} has all {compared["total"]} zones that it should have, {how}.'
    else:
        yield (f'{compared["server"]} should have {compared["total"]} zones: {len(missing)} are missing, '
               f'{len(behind)} are behind.')
    yield from _named('missing', missing, limit)
    yield from _named('behind', [_behind(each) for each in behind], limit)
    if compared['other'] is not None and not other:
        yield f'Contents: {"no difference" if compared["unchecked"] else "all the same"}.'
    yield from _named('other contents', [_with_why(each) for each in other], limit)
    yield from _named('contents not checked', [_with_why(each) for each in compared['unchecked']], limit)
    yield from _named('extra', extra or (), limit)
    if (missing or behind or other) and not compared['mending']:
        yield f'--fix creates missing zones and transfers outdated{" or differing" if other else ""} ones again.'
    elif compared['mending']:
        yield f'Repair started: {compared["mending"]} operations.'
    if extra is None:
        yield 'It cannot list its zones, so extra ones are not known.'
    elif compared['deleted']:
        why = '' if compared['deleted'] == len(extra) else ' The log of the pool manager says why not the rest.'
        yield f'Deleted: {compared["deleted"]} of {len(extra)} extra zones.{why}'
    elif extra:
        yield f'Extra zones stay; --delete-extra {len(extra)} deletes them.'
    if extra is not None and not compared['extra_complete']:
        yield 'It cannot list its zones: extra ones are known only if the pool had them before.'


def _named(kind: str, names: Sequence[str], limit: int | None) -> Iterator[str]:
    if not names:
        return
    yield f'{kind}: {len(names)}'
    yield from (f'  {name}' for name in names[:limit])
    if limit is not None and len(names) > limit:
        yield f'  and {len(names) - limit} more; --all shows them'


def _with_why(each: Json) -> str:
    return f'{each["zone_name"]}  {each["why"]}'


def _behind(each: Json) -> str:
    serves = 'nothing' if each['serial'] is None else each['serial']
    return f'{each["zone_name"]}  serves {serves}, should serve {each["expected_serial"]}'
