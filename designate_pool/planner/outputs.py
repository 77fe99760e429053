"""Plans as people and programs read them.

Each output shows every zone and target on which something is to be done, was kept back or has failed, and says of the
others how many they are.  What is shown comes from zones; of a provider nothing is shown but its id.
"""

from __future__ import annotations

import abc
import html
import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from designate_pool.errors import InvalidField
from designate_pool.planner.run_report import TargetResult, lines_of
from designate_pool.planner.zone.changes import Change
from designate_pool.protocol.rrset import RRset

LOG = logging.getLogger(__name__)
LEVELS = {'debug': logging.DEBUG, 'info': logging.INFO, 'warn': logging.WARNING, 'warning': logging.WARNING,
          'error': logging.ERROR}
HEADS = ('Operation', 'Name', 'Type', '', 'TTL', 'Data')
#: What Markdown would take for markup, a link or somebody's name.
_MARKUP = {ord(each): f'&#{ord(each)};' for each in '\\`*_[]<>#!|&~@$'}

Row = tuple[str, str, str, str, str, str]


class BaseOutput(abc.ABC):
    """
    :param output_filename: the file that is written anew by each run; without it, the run says where to write
    """

    def __init__(self, id: str, output_filename: str | None = None) -> None:
        self.id = id
        self.output_filename = output_filename

    def run(self, parts: Sequence[TargetResult], file: TextIO) -> None:
        """Show *parts*, in their order.

        :raises InvalidField: when the output's file cannot be written
        """
        text = self.text(parts)
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
    def text(self, parts: Sequence[TargetResult]) -> str:
        """All that there is to show, with a line's end at its end."""


class LogOutput(BaseOutput):
    """Writes to the log, as one entry.

    :param level: ``debug``, ``info``, ``warn``, ``warning`` or ``error``
    """

    def __init__(self, id: str, level: str = 'info') -> None:
        super().__init__(id)
        if level.lower() not in LEVELS:
            raise InvalidField(field='level', why=f'{level!r} is not one of {", ".join(LEVELS)}')
        self.level = LEVELS[level.lower()]

    def run(self, parts: Sequence[TargetResult], file: TextIO) -> None:
        LOG.log(self.level, '%s', self.text(parts).rstrip('\n'))

    def text(self, parts: Sequence[TargetResult]) -> str:
        return ''.join(f'{line}\n' for part in parts if _is_shown(part) for line in self._lines(part)) \
            + f'{summary(parts)}\n'

    def _lines(self, part: TargetResult) -> Iterator[str]:
        yield heading(part)
        for operation, name, rtype, sign, ttl, data in _rows(part):
            if operation:
                yield f'  {operation} {name} {rtype}'.rstrip()
            if sign:
                yield f'    {sign} {name} {ttl} {rtype} {data}'
        for title, text in _notes(part):
            yield f'  {title}: {text}'


class JsonOutput(BaseOutput):
    """
    :param indent: spaces for each level; None for all on one line
    :param sort_keys: whether keys are in alphabetical order
    """

    def __init__(self, id: str, indent: int | None = None, sort_keys: bool = True,
                 output_filename: str | None = None) -> None:
        super().__init__(id, output_filename)
        self.indent = indent
        self.sort_keys = sort_keys

    def text(self, parts: Sequence[TargetResult]) -> str:
        return json.dumps(document(parts), indent=self.indent, sort_keys=self.sort_keys) + '\n'


class MarkdownOutput(BaseOutput):
    """Markdown with tables, as GitHub and GitLab have them."""

    def text(self, parts: Sequence[TargetResult]) -> str:
        shown = [part for part in parts if _is_shown(part)]
        return ''.join(f'{self._section(part)}\n' for part in shown) + f'**{_markdown(summary(parts))}**\n'

    def _section(self, part: TargetResult) -> str:
        lines = [f'## {_markdown(f"{part.zone} on {part.target_id}")}', '']
        rows = list(_rows(part))
        if rows:
            lines += [f'| {" | ".join(HEADS)} |', f'|{"--|" * len(HEADS)}']
            lines += [f'| {" | ".join(_markdown(each) for each in row)} |' for row in rows]
            lines.append('')
        for title, text in (*_notes(part), ('Summary', _summary_of(part))):
            lines += [f'**{title}:** {_markdown(text)}', '']
        return '\n'.join(lines)


class HtmlOutput(BaseOutput):
    """A piece of HTML, to be put into a page."""

    def text(self, parts: Sequence[TargetResult]) -> str:
        shown = [part for part in parts if _is_shown(part)]
        return ''.join(self._section(part) for part in shown) + f'<p><b>{_html(summary(parts))}</b></p>\n'

    def _section(self, part: TargetResult) -> str:
        lines = [f'<h2>{_html(f"{part.zone} on {part.target_id}")}</h2>']
        rows = list(_rows(part))
        if rows:
            lines.append('<table>')
            lines.append(f'  <tr>{"".join(f"<th>{head}</th>" for head in HEADS)}</tr>')
            lines += [f'  <tr>{"".join(f"<td>{_html(each)}</td>" for each in row)}</tr>' for row in rows]
            lines.append('</table>')
        lines += [f'<p><b>{title}:</b> {_html(text)}</p>'
                  for title, text in (*_notes(part), ('Summary', _summary_of(part)))]
        return ''.join(f'{line}\n' for line in lines)


#: By the user's word.
OUTPUTS: dict[str, type[BaseOutput]] = {
    'log': LogOutput, 'json': JsonOutput, 'markdown': MarkdownOutput, 'html': HtmlOutput,
}


def document(parts: Sequence[TargetResult]) -> dict[str, Any]:
    """All *parts* as JSON has them: the documents of their plans, what makes these unsafe, and what failed."""
    return {
        'plans': [{**part.plan.document(), 'dangers': [str(each) for each in part.dangers], 'forced': part.forced,
                   'only_planned': part.only_planned} for part in parts if part.plan is not None],
        'failed': [{'zone': part.zone, 'target': part.target_id, 'error': part.error}
                   for part in parts if part.error is not None],
        'unchanged': [{'zone': part.zone, 'target': part.target_id} for part in parts if not _is_shown(part)],
        'summary': summary(parts),
    }


def heading(part: TargetResult) -> str:
    """In a line: the zone, the target and how much is to be done."""
    return f'{part.zone} on {part.target_id}: {_summary_of(part)}'


def summary(parts: Sequence[TargetResult]) -> str:
    """In a line: how much is to be done on all targets together."""
    counts = [part.plan.counts for part in parts if part.plan is not None]
    told = []
    if not any(_is_shown(part) for part in parts):
        return f'Nothing to do; zones compared with a target: {len(parts)}.' if parts else 'Nothing to do.'
    told.append(f'{sum(each.creates for each in counts)} to create, {sum(each.updates for each in counts)} to update, '
                f'{sum(each.deletes for each in counts)} to delete')
    for number, what in ((sum(len(part.plan.blocked) for part in parts if part.plan is not None), 'kept back'),
                         (sum(1 for part in parts if part.is_unsafe), 'unsafe'),
                         (sum(1 for part in parts if part.error is not None), 'failed'),
                         (sum(1 for part in parts if not _is_shown(part)), 'with nothing to do')):
        if number:
            told.append(f'{number} {what}')
    return f'In all {", ".join(told)}.'


def _is_shown(part: TargetResult) -> bool:
    return part.plan is not None or part.error is not None


def _summary_of(part: TargetResult) -> str:
    if part.plan is None:
        return 'it failed' if part.error is not None else 'nothing to do'
    return part.plan.summary()


def _notes(part: TargetResult) -> Iterator[tuple[str, str]]:
    """What is to be said beside changes: a title and a text without line ends for each."""
    if part.plan is not None:
        for blocked in part.plan.blocked:
            yield f'Kept back ({blocked.by})', _line(f'{blocked.change}: {blocked.why}')
        if part.plan.meta:
            yield 'Meta', json.dumps(part.plan.meta, sort_keys=True, default=str)
    for danger in part.dangers:
        yield 'Unsafe, forced by you' if part.forced else 'Unsafe, needs --force', _line(str(danger))
    if part.only_planned and part.plan is not None:
        yield 'Note', 'the zone is only planned, never applied'
    if part.error is not None:
        for line in lines_of(part.error):
            yield 'Failed', line


def _rows(part: TargetResult) -> Iterator[Row]:
    """A row for each RRset on each side; the first of a change says what is done."""
    if part.plan is None:
        return
    if not part.plan.exists:
        yield 'Create zone', part.zone, '', '', '', ''
    for change in part.plan.changes:
        yield from _rows_of(change)


def _rows_of(change: Change) -> Iterator[Row]:
    operation = change.kind
    sides: tuple[tuple[str, Sequence[RRset]], ...] = (('-', change.existing), ('+', change.new))
    for sign, rrsets in sides:
        for rrset in rrsets:
            extra = '' if rrset.extra.served == (None, None) else \
                f' {json.dumps(rrset.extra.served, sort_keys=True, default=str)}'
            yield operation, rrset.name, rrset.type, sign, str(rrset.ttl), f'{"; ".join(rrset.rdatas)}{extra}'
            operation = ''


def _line(text: str) -> str:
    return ' '.join(text.split())


def _markdown(text: str) -> str:
    """*text* so that Markdown shows it as it is, also in a table."""
    return text.translate(_MARKUP)


def _html(text: str) -> str:
    return html.escape(text)
