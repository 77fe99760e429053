"""Directives that write reference pages from the code itself.

``.. schema-reference::``
    Every table with its columns.
``.. rpc-reference:: MODULE.CLASS``
    Every method of a client: its signature and what its docstring says.
``.. command-reference::``
    Every command of ``designate-pool`` with its options.
``.. program-reference:: MODULE.FUNCTION``
    A program, from the argparse parser that the function returns, or adds its commands to.
``.. api-reference::``
    Every operation of the API, from its OpenAPI document.
``.. shapes-reference::``
    What these answer, field by field.
``.. policy-reference::``
    Every rule of the policy with its default.
``.. metrics-reference::``
    Every metric of the programs.
``.. package-map::``
    Every package with the first paragraph of its docstring.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import designate_pool

Lines = Iterator[str]


class Written(Directive):
    """A directive that stands for the lines of :meth:`lines`."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        section = nodes.container()
        self.state.nested_parse(StringList(list(self.lines()), source=self.name), 0, section)
        return [section]

    def lines(self) -> Lines:
        raise NotImplementedError

    def named(self) -> Any:
        """The thing that the argument names."""
        module, _, name = self.arguments[0].rpartition('.')
        return getattr(importlib.import_module(module), name)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Lines:
    yield from ('', '.. list-table::', '   :header-rows: 1', '   :class: reference', '')
    for row in (header, *rows):
        for number, cell in enumerate(row):
            yield f'   {"-" if number else "* -"} {cell}' if number == 0 else f'     - {cell}'
    yield ''


def indented(text: str, by: str = '   ') -> Lines:
    yield from textwrap.indent(text, by).split('\n')


class Schema(Written):
    def lines(self) -> Lines:
        from designate_pool.storage.sql.schema import metadata
        for found in sorted(metadata.tables.values(), key=lambda each: each.name):
            yield from (f'.. rubric:: {found.name}', '')
            yield from table(('column', 'type', 'null', 'refers to'), [
                (f'``{column.name}``' + (' (key)' if column.primary_key else ''), _type(column),
                 'yes' if column.nullable else '',
                 ', '.join(f'``{key.target_fullname}``' for key in column.foreign_keys))
                for column in found.columns])
            unique = [each for each in found.constraints if isinstance(each, sa.UniqueConstraint)]
            for each in unique:
                yield f'Unique: {", ".join(f"``{column.name}``" for column in each.columns)}.'
                yield ''
            for index in sorted(found.indexes, key=lambda each: str(each.name)):
                yield f'Index: {", ".join(f"``{column.name}``" for column in index.columns)}.'
                yield ''


def _type(column: sa.Column[Any]) -> str:
    if isinstance(column.type, sa.Enum):
        return ', '.join(f'``{each}``' for each in column.type.enums)
    return f'{column.type}'.lower()


class Rpc(Written):
    required_arguments = 1
    optional_arguments = 0

    def lines(self) -> Lines:
        client = self.named()
        yield from ('', *inspect.cleandoc(client.__doc__ or '').split('\n'), '')
        for name, method in inspect.getmembers(client, inspect.isfunction):
            if name.startswith('_'):
                continue
            yield from (f'.. py:method:: {name}{_signature(method)}', '   :no-index:', '')
            yield from indented(inspect.cleandoc(method.__doc__ or ''))
            yield ''


def _signature(method: Any) -> str:
    found = inspect.signature(method)
    return str(found.replace(parameters=[each for each in found.parameters.values() if each.name != 'self']))


class Commands(Written):
    def lines(self) -> Lines:
        from designate_pool.cli.app import COMMANDS, Shell
        app = Shell()
        app.options = app.parser.parse_args([])
        for name, entry in sorted(COMMANDS.items()):
            command = entry.load()
            parser = command(app, None, cmd_name=name).get_parser(f'designate-pool {name}')
            yield from described(parser, inspect.cleandoc(command.__doc__ or ''), skip=_FORMATTING)


#: Groups of options that every command has which shows something; they are told of once.
_FORMATTING = re.compile('formatter|output|table|CSV|JSON|shell|value', re.I)


class Program(Written):
    required_arguments = 1
    optional_arguments = 0

    def lines(self) -> Lines:
        made = self.named()
        if 'commands' not in inspect.signature(made).parameters:
            return described(made(), '')
        parser = argparse.ArgumentParser(made.__module__.rpartition('.')[2].join(('designate-pool-', '')))
        made(parser.add_subparsers())
        return described(parser, '')


def described(parser: argparse.ArgumentParser, about: str, skip: re.Pattern[str] | None = None) -> Lines:
    """A parser and the parsers of its commands."""
    yield from (f'.. rubric:: {parser.prog}', '', *(about or parser.description or '').split('\n'), '')
    commands = []
    for group in parser._action_groups:
        if skip is not None and group.title and skip.search(group.title):
            continue
        for action in group._group_actions:
            if isinstance(action, argparse._SubParsersAction):
                commands.append(action)
            elif action.help is not argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
                yield f'``{_usage(action)}``'
                yield from indented(_help(parser, action) or '..', '    ')
                yield ''
    for each in commands:
        helps = {choice.dest: choice.help for choice in each._choices_actions}
        for name, child in each.choices.items():
            yield from described(child, helps.get(name) or child.description or '')


def _usage(action: argparse.Action) -> str:
    value = action.metavar or (f'{{{",".join(map(str, action.choices))}}}' if action.choices else action.dest.upper())
    value = ' '.join(value) if isinstance(value, tuple) else value
    if not action.option_strings:
        return value
    return ', '.join(action.option_strings) + ('' if action.nargs == 0 else f' {value}')


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ''
    return re.sub(r'([\\*|_`])', r'\\\1', text)


class Api(Written):
    def lines(self) -> Lines:
        from designate_pool.api import operation_registry
        from designate_pool.api.schema import openapi
        made = openapi.make_document(operation_registry.operations())
        bodies = made['components']['schemas']
        rules = {each.name: each for each in operation_registry.operations()}
        by_tag: dict[str, list[tuple[str, str, Any]]] = {}
        for path, methods in made['paths'].items():
            for method, operation in methods.items():
                by_tag.setdefault(operation['tags'][0], []).append((path, method, operation))
        for tag, operations in by_tag.items():
            yield from (f'.. rubric:: {tag.replace("_", " ").capitalize()}', '')
            for path, method, operation in operations:
                yield from _operation(path, method, operation, bodies, rules[operation['operationId']].role)


def _operation(path: str, method: str, operation: Any, bodies: Any, role: str) -> Lines:
    yield f'``{method.upper()} {path}``'
    facts = [f'{operation["summary"]}. Least role: {role}; rule ``{operation["operationId"]}``.']
    query = [f'``{each["name"]}`` ({_shape(each["schema"])})' for each in operation['parameters']
             if each['in'] == 'query']
    if query:
        facts.append(f'Query: {", ".join(query)}.')
    for media, content in operation.get('requestBody', {}).get('content', {}).items():
        schema = content['schema']
        found = bodies[schema['$ref'].rpartition('/')[2]] if '$ref' in schema else schema
        required = set(found.get('required', ()))
        named = [f'``{name}`` ({_shape(each)}{", required" if name in required else ""})'
                 for name, each in found.get('properties', {}).items()]
        optional = '' if operation['requestBody']['required'] else ', which may be left out'
        facts.append(f'Body (``{media}``{optional}): {", ".join(named) or "any text"}.')
    facts.append('Answers: ' + ', '.join(_answers(operation['responses'])) + '.')
    for fact in facts:
        yield from indented(_plain(fact))
        yield ''


def _answers(responses: Any) -> Iterator[str]:
    for status, answer in responses.items():
        if '$ref' in answer:
            continue
        contents = [content['schema'].get('$ref', '').rpartition('/')[2] or f'``{media}``'
                    for media, content in answer.get('content', {}).items()]
        yield f'{status} {" or ".join(contents)}'.strip()
    yield ' '.join(status for status, answer in responses.items() if '$ref' in answer)


def _shape(schema: Any) -> str:
    """A schema in a word or two."""
    if '$ref' in schema:
        return str(schema['$ref'].rpartition('/')[2])
    if 'enum' in schema:
        return ' | '.join('null' if each is None else str(each) for each in schema['enum'])
    kinds = schema.get('type')
    if kinds is None:
        parts = schema.get('anyOf') or schema.get('oneOf') or [{'type': 'anything'}]
        return ' | '.join(dict.fromkeys(_shape(each) for each in parts))
    words = []
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind == 'array':
            words.append(f'list of {_shape(schema.get("items", {}))}')
        else:
            words.append(schema.get('format', kind) if kind == 'string' else kind)
    words_of = (('minimum', 'from'), ('maximum', 'to'), ('maxLength', 'at most'))
    limits = [f'{word} {schema[key]}' for key, word in words_of if key in schema]
    return ' '.join([' | '.join(words), *limits])


def _plain(text: str) -> str:
    return re.sub(r'([\\*|_`])', r'\\\1', text)


class Shapes(Written):
    """What is answered: every schema that the operations name."""

    def lines(self) -> Lines:
        from designate_pool.api import operation_registry
        from designate_pool.api.schema import openapi
        schemas = openapi.make_document(operation_registry.operations())['components']['schemas']
        for name, schema in sorted(schemas.items()):
            if name.endswith('Body'):  # of requests
                continue
            yield from (f'.. rubric:: {name}', '', _plain(schema.get('description', '')), '')
            rows = [(f'``{field}``', _plain(_shape(each)), _plain(each.get('description', '')))
                    for field, each in schema.get('properties', {}).items()]
            if rows:
                yield from table(('field', 'kind', 'what it is'), rows)
            else:
                yield _plain(_shape(schema))


class Policy(Written):
    def lines(self) -> Lines:
        from designate_pool.api.auth import policy
        yield from table(('rule', 'default', 'what it is about'), [
            (f'``{rule.name}``', f'``{rule.check_str}``', _plain(rule.description)) for rule in policy.list_rules()])


class Metrics(Written):
    def lines(self) -> Lines:
        from prometheus_client.metrics import MetricWrapperBase

        from designate_pool import metrics
        found = [each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase)]
        yield from table(('metric', 'type', 'labels', 'what it is'), [
            (f'``{each._name}{ {"counter": "_total", "info": "_info"}.get(each._type, "")}``', each._type,
             ', '.join(f'``{name}``' for name in each._labelnames), _plain(each._documentation)) for each in found])


class PackageMap(Written):
    def lines(self) -> Lines:
        for package, docstring in packages().items():
            yield from (f'``{package}``', *indented(docstring.partition('\n\n')[0]), '')


def packages() -> dict[str, str]:
    """The docstrings of all packages below ``designate_pool``, by name."""
    folder = pathlib.Path(designate_pool.__path__[0])
    return {'.'.join(path.parent.relative_to(folder).parts): ast.get_docstring(ast.parse(path.read_text())) or ''
            for path in sorted(folder.rglob('*/__init__.py'))}


def setup(app: Any) -> dict[str, bool]:
    for name, directive in (('schema-reference', Schema), ('rpc-reference', Rpc), ('command-reference', Commands),
                            ('program-reference', Program), ('api-reference', Api), ('shapes-reference', Shapes),
                            ('policy-reference', Policy), ('metrics-reference', Metrics), ('package-map', PackageMap)):
        app.add_directive(name, directive)
    return {'parallel_read_safe': True}
