"""Reading a YAML file: duplicate keys are errors, and all mistakes are reported together."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from designate_pool.errors import BadConfiguration

#: The loader in C, if PyYAML was built with it.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class YamlErrors:
    """Collects mistakes with their places, in the order in which they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, place: str, why: str) -> None:
        """
        :param place: such as ``zones.example.com..targets[0]``
        :param why: must not contain a secret
        """
        line = f'{place}: {" ".join(why.split()).rstrip(".")}'
        if line not in self.lines:
            self.lines.append(line)

    def raise_if_any(self) -> None:
        """
        :raises BadConfiguration: with every mistake on a line of its own
        """
        if self.lines:
            raise BadConfiguration(count=len(self.lines), listing=''.join(f'\n  {line}' for line in self.lines))


def load(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The mapping in the file at *path*.

    :raises BadConfiguration: when it cannot be read, is not YAML, has a duplicate key, or is no mapping
    """
    mistakes = YamlErrors()
    found: Any = None
    try:
        with open(path, encoding='utf-8') as file:
            loader = _LOADER(file)
            try:
                node = loader.get_single_node()
                for line, key in _duplicate_keys(node, set()):
                    mistakes.note(f'{path} line {line}', f'{key} is there twice')
                found = loader.construct_document(node) if node is not None else None
            finally:
                loader.dispose()
    except OSError as error:
        mistakes.note(str(path), f'it cannot be read ({error.strerror})')
    except UnicodeDecodeError as error:
        mistakes.note(str(path), f'it is not UTF-8 text (octet {error.start})')
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f' line {mark.line + 1} column {mark.column + 1}' if mark is not None else ''
        mistakes.note(f'{path}{where}', error.problem or error.context or 'it is not YAML')
    except yaml.YAMLError as error:
        mistakes.note(str(path), str(error))
    else:
        if not isinstance(found, dict):
            mistakes.note(str(path), 'must be a mapping, with zones and providers')
    mistakes.raise_if_any()
    return dict(found)


def hint(word: object, known: Iterable[str]) -> str:
    """`` (did you mean ...?)`` if *word* is similar to one of *known*, otherwise empty."""
    close = difflib.get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.7)
    return f' (did you mean {close[0]}?)' if close else ''


def _duplicate_keys(node: Any, seen: set[int]) -> Iterator[tuple[int, str]]:
    """Duplicate keys of mappings, with their lines; an aliased node is visited once."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _duplicate_keys(each, seen)
    elif isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    yield key.start_mark.line + 1, key.value
                keys.add((key.tag, key.value))
            yield from _duplicate_keys(value, seen)
