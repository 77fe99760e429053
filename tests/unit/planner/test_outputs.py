"""Plans as people and programs read them: all that is to be known, and nothing that runs."""

from __future__ import annotations

import dataclasses
import html.parser
import io
import json
import logging
import pathlib
import re

import pytest

from designate_pool.errors import InvalidField, SourceError
from designate_pool.planner.engine import SyncEngine, TargetResult
from designate_pool.planner.outputs import OUTPUTS, BaseOutput, HtmlOutput, JsonOutput, LogOutput, MarkdownOutput
from designate_pool.planner.plan.plan import change_of
from tests.unit.planner.conftest import Memory, manager
from tests.unit.planner.values import ORIGIN, zone

BEFORE = '''@ 300 MX 10 www.example.com.
www 300 A 192.0.2.1
alias 300 A 192.0.2.2
old 300 A 192.0.2.3
old 300 A 192.0.2.4'''
AFTER = 'www 60 A 192.0.2.9\nalias 300 CNAME www.example.com.\nnew 300 TXT "v=1"'
NASTY = r'<script>alert(1)</script> a|b `c` **d** [e](http://example.net/) \; @f $g$ & "q"'
SECRET = 'a-key-that-nobody-may-see'


class WithSecret(Memory):
    """A target with a secret among its settings, and something for people to know."""

    def __init__(self, id: str, key: str = SECRET) -> None:
        super().__init__(id)
        self.key = key

    def __repr__(self) -> str:
        return f'WithSecret({self.key})'

    def _plan_meta(self, *_: object) -> dict[str, object] | None:  # type: ignore[override]
        return {'note': 'a <b> | note', 'when': zone}


def results(after: str = AFTER, **setup: object) -> list[TargetResult]:
    source, bad, good = Memory('source').has(after), Memory('bad'), WithSecret('good').has(BEFORE)
    bad.broken = 'an answer\nof <two> lines'
    run: SyncEngine = manager(source, bad, good, Memory('same').has(after), **setup)
    return list(run.sync().results)


def text(output: BaseOutput, results: list[TargetResult]) -> str:
    if isinstance(output, LogOutput):
        return output.text(results)
    file = io.StringIO()
    output.run(results, file)
    return file.getvalue()


@pytest.mark.parametrize('word', OUTPUTS)
def test_all_that_there_is_to_know_is_in_each(word: str) -> None:
    """Z-27, Z-28."""
    told = text(OUTPUTS[word](word), results(policy=('create-delete-only',)))
    plain = re.sub('&#([0-9]+);', lambda found: chr(int(found[1])), told)
    there = '"existing_records": 4' if word == 'json' else '4 existing RRsets'
    for each in ('example.com.', 'good', 'new.example.com.', 'v=1', 'alias.example.com.', 'Replace', 'Delete', 'Create',
                 '192.0.2.1', '192.0.2.9', '60', '300', 'an answer',
                 'the policy create-delete-only does not allow update', 'example.com. MX would be deleted at the apex',
                 '"forced": false' if word == 'json' else 'needs --force', 'note', '1 blocked', '1 failed',
                 '1 to create, 1 to update, 2 to delete', '1 unsafe', '1 with nothing to do', there):
        assert each in plain, each
    assert SECRET not in told and 'WithSecret' not in told


def test_the_log_has_it_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    found = results()
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        LogOutput('log', 'warning').run(found, io.StringIO())
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().splitlines() == [
        'example.com. on bad: failed',
        '  Failed: bad cannot be read: an answer of <two> lines.',
        'example.com. on good: 1 to create, 2 to update, 2 to delete; 4 existing RRsets',
        '  Delete example.com. MX',
        '    - example.com. 300 MX 10 www.example.com.',
        '  Delete old.example.com. A',
        '    - old.example.com. 300 A 192.0.2.3; 192.0.2.4',
        '  Replace alias.example.com. A',
        '    - alias.example.com. 300 A 192.0.2.2',
        '    + alias.example.com. 300 CNAME www.example.com.',
        '  Update www.example.com. A',
        '    - www.example.com. 300 A 192.0.2.1',
        '    + www.example.com. 60 A 192.0.2.9',
        '  Create new.example.com. TXT',
        '    + new.example.com. 300 TXT "v=1"',
        f'  Meta: {{"note": "a <b> | note", "when": "{zone}"}}',
        '  Unsafe, needs --force: example.com. on good: example.com. MX would be deleted at the apex.',
        'In all 1 to create, 2 to update, 2 to delete, 1 unsafe, 1 failed, 1 with nothing to do.',
    ]


def test_mistakes_have_a_line_each() -> None:
    error = str(SourceError(source='zone', why="it has these mistakes:\n  line 2: no: 'a'\n  line 5: no: 'b'"))
    told = text(LogOutput('log'), [TargetResult(ORIGIN, 'bad', error=error)])
    assert told.splitlines()[1:4] == ['  Failed: zone cannot be read: it has these mistakes:',
                                      "  Failed: line 2: no: 'a'", "  Failed: line 5: no: 'b'."]


def test_json_is_the_documents_of_the_plans() -> None:
    found = results()
    told = json.loads(text(JsonOutput('json'), found))
    (document,) = told['plans']
    plan = next(result.plan for result in found if result.plan is not None)
    assert [change_of(each) for each in document['changes']] == plan.changes
    assert document['existing_digest'] == plan.existing.digest()
    assert told['failed'] == [{'zone': ORIGIN, 'target': 'bad',
                               'error': 'bad cannot be read: an answer\nof <two> lines.'}]
    assert told['unchanged'] == [{'zone': ORIGIN, 'target': 'same'}]
    assert text(JsonOutput('json', indent=2), found).startswith('{\n  "failed"')
    assert text(JsonOutput('json', sort_keys=False), found).startswith('{"plan_id": null, "plans"')


class Reader(html.parser.HTMLParser):
    """Collects the tags and the text of a page as a browser would."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert not attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def nasty() -> list[TargetResult]:
    quoted = NASTY.replace('\\', '\\\\').replace('"', '\\"')
    found = results(f'new 300 TXT "{quoted}"\nwww 300 A 192.0.2.1\nalias 300 A 192.0.2.2\nold 300 A 192.0.2.3')
    return [dataclasses.replace(result, error=NASTY) if result.error else result for result in found]


def test_html_shows_what_is_nasty_and_runs_none_of_it() -> None:
    page = Reader(text(HtmlOutput('html'), nasty()))
    assert page.tags == {'h2', 'p', 'b', 'table', 'tr', 'th', 'td'} and page.open == []
    assert sum('<script>alert(1)</script> a|b `c`' in each for each in page.texts) == 2


def test_markdown_shows_what_is_nasty_and_keeps_its_tables() -> None:
    told = text(MarkdownOutput('markdown'), nasty())
    for each in ('<script>', '`c`', '**d**', '[e]', '@f', '$g'):
        assert each not in told
    rows = [line for line in told.splitlines() if line.startswith('|')]
    assert rows and all(row.count('|') == 7 for row in rows)
    assert any('a&#124;b &#96;c&#96; &#42;&#42;d' in row for row in rows)


@pytest.mark.parametrize('word', OUTPUTS)
def test_nothing_to_do_is_said(word: str) -> None:
    source = Memory('source').has(AFTER)
    found = list(manager(source, Memory('target').has(AFTER)).sync().results)
    assert 'Nothing to do; zones compared with a target: 1.' in text(OUTPUTS[word](word), found)
    assert 'Nothing to do.' in text(OUTPUTS[word](word), [])


@pytest.mark.parametrize('word', OUTPUTS)
def test_a_zone_that_is_made_and_what_is_forced_are_said(word: str) -> None:
    source, target = Memory('source').has(AFTER), Memory('target')
    made = list(manager(source, target).sync().results)
    told = text(OUTPUTS[word](word), made)
    assert ('"exists": false' if word == 'json' else 'Create zone') in told
    target.has(BEFORE.replace('www', 'other'))
    source.has('more 300 A 192.0.2.1')
    forced = list(manager(source, target).sync(force=[ORIGIN]).results)
    told = text(OUTPUTS[word](word), forced)
    assert ('"forced": true' if word == 'json' else 'Unsafe, forced by you') in told


def test_a_file_is_written_anew_by_each_run(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'plan.md'
    source, target = Memory('source').has(AFTER), Memory('target')
    run = manager(source, target, outputs=[MarkdownOutput('md', str(path)), JsonOutput('json')])
    run.sync(dry_run=False)
    assert 'new.example.com.' in path.read_text() and json.loads(capsys.readouterr().out)['plans']
    run.sync()
    assert path.read_text().startswith('**Nothing to do') and not json.loads(capsys.readouterr().out)['plans']


def test_a_file_that_cannot_be_written_stops_the_run_before_anything_is_applied(tmp_path: pathlib.Path) -> None:
    target = Memory('target')
    run = manager(Memory('source').has(AFTER), target, outputs=[HtmlOutput('page', str(tmp_path / 'no' / 'plan.html'))])
    with pytest.raises(InvalidField, match='plan_outputs.page.output_filename: .* cannot be written'):
        run.sync(dry_run=False)
    assert target.zones == {}
