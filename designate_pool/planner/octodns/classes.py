"""octoDNS's classes: import, construction, and what arguments they accept."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from designate_pool.errors import InvalidField
from designate_pool.planner.octodns.plans import error_text
from designate_pool.planner.octodns.records import octodns

FEATURES = ('GEO', 'DYNAMIC', 'POOL_VALUE_STATUS', 'DYNAMIC_SUBNETS', 'MULTIVALUE_PTR', 'ROOT_NS')


def class_of(cls: str | type, base: str) -> type:
    """The class *cls*, which must be a subclass of octoDNS's *base*.

    :raises InvalidField: when it is not, or cannot be imported
    """
    module, _, name = base.rpartition('.')
    wanted: type = getattr(octodns(module), name)
    for registry in (octodns('record').Record.validators, octodns('zone').Zone.validators):
        if not registry.configured:
            # octoDNS's own default; enabled here to avoid its warning about missing configuration.
            registry.enable_sets(['legacy'])
    found: Any = cls
    if isinstance(cls, str):
        path, _, last = cls.rpartition('.')
        try:
            found = getattr(importlib.import_module(path), last)
        except (ImportError, ValueError, AttributeError) as error:
            raise InvalidField(field='class', why=f'{cls!r} cannot be imported: {error_text(error)}') from error
    if not (isinstance(found, type) and issubclass(found, wanted)):
        raise InvalidField(field='class', why=f'{cls!r} is no subclass of octoDNS\'s {name}')
    return found


def instantiate(id: str, cls: type, kwargs: Mapping[str, Any]) -> Any:
    """
    :raises InvalidField: when *cls* does not take *kwargs*
    """
    try:
        return cls(id, **kwargs)
    except Exception as error:
        raise InvalidField(field=id,
                           why=f'{cls.__module__}.{cls.__name__} cannot be created: {error_text(error)}') from error


def lenient_argument(method: Any, lenient: bool) -> dict[str, bool]:
    """The argument *lenient*, if the method accepts it; older sources and processors do not."""
    return {'lenient': lenient} if accepts(method, 'lenient') else {}


def accepts(function: Any, name: str) -> bool:
    """Whether a function or class accepts an argument *name*, by its signature."""
    if not isinstance(function, type):
        parameters = inspect.signature(function).parameters
        return name in parameters or _has_kwargs(parameters)
    for each in function.__mro__:
        if '__init__' in vars(each):
            parameters = inspect.signature(vars(each)['__init__']).parameters
            if name in parameters:
                return True
            if not _has_kwargs(parameters):
                return False
    return False


def _has_kwargs(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


def resolve_env(value: Any, environ: Mapping[str, str]) -> Any:
    """*value* with ``env/NAME`` and ``env/NAME/default`` replaced by the value of the environment variable.

    :raises InvalidField: for a variable that is not set and has no default
    """
    if isinstance(value, dict):
        return {key: resolve_env(each, environ) for key, each in value.items()}
    if not isinstance(value, str) or not value.startswith('env/'):
        return value
    name, slash, default = value.removeprefix('env/').partition('/')
    if name not in environ and not slash:
        raise InvalidField(field='settings', why=f'the environment has no variable {name}')
    return environ.get(name, default)
