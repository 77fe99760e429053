"""Outputs: plans as log lines, JSON, Markdown and HTML.

Each shows every zone and target with changes, blocked changes or errors, and counts the others.  Of a provider only its
id is shown.
"""

from __future__ import annotations

import abc
import html
import json
import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from designate_pool.errors import InvalidField
from designate_pool.planner.run_report import TargetResult, lines_of

LOG = logging.getLogger(__name__)
LEVELS = {'debug': logging.DEBUG, 'info': logging.INFO, 'warn': logging.WARNING, 'warning': logging.WARNING,
          'error': logging.ERROR}
HEADS = ('Operation', 'Name', 'Type', '', 'TTL', 'Data')
#: What Markdown would interpret as markup, a link or a user's name.
_MARKUP = {ord(character): f'&#{ord(character)};' for character in '\\`*_[]<>#!|&~@$'}

Row = tuple[str, str, str, str, str, str]


class BaseOutput(abc.ABC):
    """
    :param output_filename: the file that each run overwrites; without it, the caller's file is used
    """

    def __init__(self, id: str, output_filename: str | None = None) -> None:
        self.id = id
        self.output_filename = output_filename

    def run(self, results: Sequence[TargetResult], file: TextIO, plan_id: str | None = None) -> None:
        """Show *results*, in their order; InvalidField when the output's file cannot be written."""
        text = self.text(results, plan_id)
        if self.output_filename is None:
            file.write(text)
            return
        try:
            with open(self.output_filename, 'w', encoding='utf-8') as own:
                own.write(text)
        except OSError as error:
            raise InvalidField(field=f'plan_outputs.{self.id}.output_filename',
                               why=f'{self.output_filename} cannot be written ({error.strerror})') from error

    @abc.abstractmethod
    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        """All that is to be shown, ending with a newline."""


class LogOutput(BaseOutput):
    """Writes one entry to the log."""

    def __init__(self, id: str, level: str = 'info') -> None:
        super().__init__(id)
        if level.lower() not in LEVELS:
            raise InvalidField(field='level', why=f'{level!r} is not one of {", ".join(LEVELS)}')
        self.level = LEVELS[level.lower()]

    def run(self, results: Sequence[TargetResult], file: TextIO, plan_id: str | None = None) -> None:
        LOG.log(self.level, '%s', self.text(results).rstrip('\n'))

    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        return ''.join(f'{line}\n' for result in results if _is_shown(result) for line in self._lines(result)) \
            + f'{summary(results)}\n'

    def _lines(self, result: TargetResult) -> Iterator[str]:
        yield f'{result.zone} on {result.target_id}: {result.plan.summary() if result.plan else "failed"}'
        for operation, name, rtype, sign, ttl, data in _rows(result):
            if operation:
                yield f'  {operation} {name} {rtype}'.rstrip()
            if sign:
                yield f'    {sign} {name} {ttl} {rtype} {data}'
        yield from (f'  {title}: {text}' for title, text in _notes(result))


class JsonOutput(BaseOutput):
    """Writes one JSON document.

    :param indent: spaces for each level; None for all on one line
    """

    def __init__(self, id: str, indent: int | None = None, sort_keys: bool = True,
                 output_filename: str | None = None) -> None:
        super().__init__(id, output_filename)
        self.indent = indent
        self.sort_keys = sort_keys

    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        return json.dumps(document(results, plan_id), indent=self.indent, sort_keys=self.sort_keys) + '\n'


class MarkdownOutput(BaseOutput):
    """Markdown with tables, as GitHub and GitLab render it."""

    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        lines: list[str] = []
        for title, rows, notes in _sections(results):
            lines += [f'## {_markdown(title)}', '']
            if rows:
                lines += [f'| {" | ".join(HEADS)} |', f'|{"--|" * len(HEADS)}']
                lines += [f'| {" | ".join(_markdown(cell) for cell in row)} |' for row in rows] + ['']
            for head, text in notes:
                lines += [f'**{head}:** {_markdown(text)}', '']
        return '\n'.join([*lines, f'**{_markdown(summary(results))}**', ''])


class HtmlOutput(BaseOutput):
    """An HTML fragment."""

    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        lines: list[str] = []
        for title, rows, notes in _sections(results):
            lines.append(f'<h2>{html.escape(title)}</h2>')
            if rows:
                lines += ['<table>', f'  <tr>{"".join(f"<th>{head}</th>" for head in HEADS)}</tr>']
                lines += [f'  <tr>{"".join(f"<td>{html.escape(cell)}</td>" for cell in row)}</tr>' for row in rows]
                lines.append('</table>')
            lines += [f'<p><b>{head}:</b> {html.escape(text)}</p>' for head, text in notes]
        return '\n'.join([*lines, f'<p><b>{html.escape(summary(results))}</b></p>', ''])


#: By name.
OUTPUTS: dict[str, type[BaseOutput]] = {
    'log': LogOutput, 'json': JsonOutput, 'markdown': MarkdownOutput, 'html': HtmlOutput,
}


def document(results: Sequence[TargetResult], plan_id: str | None) -> dict[str, Any]:
    """All *results* as a JSON object: the plans with their dangers, the failures, and what is unchanged."""
    return {
        'plan_id': None if plan_id is None else str(uuid.UUID(plan_id)),
        'plans': [{**result.plan.document(), 'dangers': [str(danger) for danger in result.dangers],
                   'forced': result.forced, 'only_planned': result.only_planned}
                  for result in results if result.plan is not None],
        'failed': [{'zone': result.zone, 'target': result.target_id, 'error': result.error}
                   for result in results if result.error is not None],
        'unchanged': [{'zone': result.zone, 'target': result.target_id} for result in results if not _is_shown(result)],
        'summary': summary(results),
    }


def summary(results: Sequence[TargetResult]) -> str:
    """One line with the counts of all targets together."""
    counts = [result.plan.counts for result in results if result.plan is not None]
    if not any(_is_shown(result) for result in results):
        return f'Nothing to do; zones compared with a target: {len(results)}.' if results else 'Nothing to do.'
    parts = [f'{sum(count.creates for count in counts)} to create, {sum(count.updates for count in counts)} to update, '
             f'{sum(count.deletes for count in counts)} to delete']
    for number, what in ((sum(len(result.plan.blocked) for result in results if result.plan is not None), 'blocked'),
                         (sum(1 for result in results if result.is_unsafe), 'unsafe'),
                         (sum(1 for result in results if result.error is not None), 'failed'),
                         (sum(1 for result in results if not _is_shown(result)), 'with nothing to do')):
        if number:
            parts.append(f'{number} {what}')
    return f'In all {", ".join(parts)}.'


def _is_shown(result: TargetResult) -> bool:
    return result.plan is not None or result.error is not None


def _notes(result: TargetResult) -> Iterator[tuple[str, str]]:
    """Notes beside the changes: title and text, without newlines."""
    if result.plan is not None:
        for blocked in result.plan.blocked:
            yield f'Blocked ({blocked.by})', ' '.join(f'{blocked.change}: {blocked.why}'.split())
        if result.plan.meta:
            yield 'Meta', json.dumps(result.plan.meta, sort_keys=True, default=str)
    for danger in result.dangers:
        yield 'Unsafe, forced by you' if result.forced else 'Unsafe, needs --force', ' '.join(str(danger).split())
    if result.only_planned and result.plan is not None:
        yield 'Note', 'the zone is only planned, never applied'
    if result.error is not None:
        yield from (('Failed', line) for line in lines_of(result.error))


def _sections(results: Sequence[TargetResult]) -> Iterator[tuple[str, list[Row], list[tuple[str, str]]]]:
    """Title, rows and notes of each result that is shown."""
    for result in results:
        if _is_shown(result):
            yield (f'{result.zone} on {result.target_id}', list(_rows(result)),
                   [*_notes(result), ('Summary', result.plan.summary() if result.plan else 'failed')])


def _rows(result: TargetResult) -> Iterator[Row]:
    """A row for each RRset on each side; the first row of a change has the operation."""
    if result.plan is None:
        return
    if not result.plan.exists:
        yield 'Create zone', result.zone, '', '', '', ''
    for change in result.plan.changes:
        operation = change.kind
        for sign, rrsets in (('-', change.existing), ('+', change.new)):
            for rrset in rrsets:
                extra = '' if rrset.extra.served == (None, None) else \
                    f' {json.dumps(rrset.extra.served, sort_keys=True, default=str)}'
                yield operation, rrset.name, rrset.type, sign, str(rrset.ttl), f'{"; ".join(rrset.rdatas)}{extra}'
                operation = ''


def _markdown(text: str) -> str:
    """*text* escaped for Markdown, also for tables."""
    return text.translate(_MARKUP)
