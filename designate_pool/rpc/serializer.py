"""Convert values to what a message can contain, and back.

A dataclass of :mod:`designate_pool.model` becomes ``{"!": "Domain", "v": [field, ...]}`` in the order of its fields.
Enums become texts and are restored from the field's annotation.  Fields that this side does not know, from a newer
sender, are dropped; missing ones, from an older sender, get their defaults.

A long list becomes ``{"!": "many", "v": [text, ...]}``, where each text is the JSON of :data:`PIECE` entries.  Encoding
a message blocks all green threads; with texts, oslo.messaging's encoder is fast, and other threads run between pieces.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool import model
from designate_pool.errors import InvalidField

MARK = '!'
#: All that messages contain.
_VALUES = (model.Domain, model.Pool, model.ServerStatus, model.Report, model.PollRequest, model.PollResult,
           model.PoolServer, model.Reloaded, model.Comparison, model.RefreshTask, model.ZoneTransferIn)
#: Lists of up to FEW entries are packed directly; longer ones in pieces of PIECE entries.
FEW, PIECE = 5000, 1000
#: Values of these classes are not converted.
_PLAIN = frozenset({type(None), str, int, float, bool})


def pack(value: Any) -> Any:
    """*value* as lists, mappings, texts, numbers and None; TypeError for what must not be sent, as secrets."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        if len(value) > FEW:
            return {MARK: 'many', 'v': [_piece(value[start:start + PIECE]) for start in range(0, len(value), PIECE)]}
        return [item if item.__class__ in _PLAIN else pack(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [pack(item) for item in value]
    if isinstance(value, Mapping):
        return {key: pack(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return {MARK: 'at', 'v': value.isoformat()}
    if value.__class__ in _FIELDS:
        return {MARK: value.__class__.__name__, 'v': [pack(getattr(value, name)) for name in _FIELDS[value.__class__]]}
    raise TypeError(f'{value.__class__.__name__} cannot be sent')


def _piece(values: Sequence[Any]) -> str:
    time.sleep(0)  # let other green threads run
    return json.dumps(pack(values))


def _many(pieces: Sequence[str]) -> list[Any]:
    values: list[Any] = []
    for piece in pieces:
        values += unpack(json.loads(piece))
        time.sleep(0)
    return values


def unpack(value: Any) -> Any:
    """The inverse of :func:`pack`; InvalidField when a value does not have the shape of its class."""
    if isinstance(value, list):
        return [item if item.__class__ in _PLAIN else unpack(item) for item in value]
    if isinstance(value, dict):
        kind = value.get(MARK)
        if kind is None:
            return {key: unpack(item) for key, item in value.items()}
        try:
            return _BUILDERS[kind](value['v'])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidField(field=str(kind), why=f'not a value of this kind ({error})') from error
    return value


def _restorer(annotation: Any) -> Callable[[Any], Any]:
    kinds = typing.get_args(annotation) or (annotation,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return lambda value: None if value is None else kind(value)
    if typing.get_origin(annotation) is tuple:
        return lambda value: tuple(unpack(value))
    if kinds[0] in (str, int, float, bool):
        return lambda value: value
    return unpack


def _builder(kind: type[Any]) -> Callable[[list[Any]], Any]:
    hints = typing.get_type_hints(kind)
    restorers = [_restorer(hints[name]) for name in _FIELDS[kind]]

    def build(values: list[Any]) -> Any:
        return kind(*[restore(value) for restore, value in zip(restorers, values)])

    return build


# Servers contain secrets and cannot be packed; a pool is sent without its servers.
_FIELDS = {kind: tuple(field.name for field in dataclasses.fields(kind)) for kind in _VALUES}
_BUILDERS: dict[str, Callable[[Any], Any]] = {kind.__name__: _builder(kind) for kind in _VALUES}
_BUILDERS['at'] = datetime.fromisoformat
_BUILDERS['many'] = _many
