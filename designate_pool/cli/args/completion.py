"""``designate-pool complete``: what a shell asks when Tab is pressed.

The script that bash reads asks the command itself for what may come next, so that it is never behind the command, and
names of zones and servers are completed as well as words.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from designate_pool.cli.base import ApiCommand, Json
from designate_pool.cli.command_table import COMMANDS
from designate_pool.cli.http import clouds
from designate_pool.cli.http.client import Client, CliError

#: Seconds that the API may take; who waits has pressed a key.
PATIENCE = 3.0
#: So many names are offered.
MOST = 100
TYPES = ('A', 'AAAA', 'CAA', 'CNAME', 'DNAME', 'DS', 'HTTPS', 'LOC', 'MX', 'NAPTR', 'NS', 'PTR', 'SPF', 'SRV', 'SSHFP',
         'SVCB', 'TLSA', 'TXT')
#: In bash a colon ends a word, so of names with one only what comes after it is completed.
BASH = """\
_FUNCTION() {
  local line="${COMP_LINE:0:COMP_POINT}" current before found
  local -a words
  read -ra words <<< "$line"
  current=""
  [[ "$line" == *[[:space:]] ]] || { current="${words[-1]}"; unset 'words[-1]'; }
  before="${current%"${current##*[:=]}"}"
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("${found#"$before"}")
  done < <("${words[0]}" complete --words -- "${words[@]:1}" "$current" 2>/dev/null)
}
complete -o default -F _FUNCTION NAME
"""


class Complete(ApiCommand):
    """Print what a shell needs to complete the command.

    For bash: source <(designate-pool complete), in ~/.bashrc for good.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--name', default='designate-pool', type=_name,
                            help='what the command is called in the shell; designate-pool if not given')
        parser.add_argument('--words', action='store_true', help=argparse.SUPPRESS)
        parser.add_argument('given', nargs='*', help=argparse.SUPPRESS)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if not parsed_args.words:
            function = 'complete_' + re.sub('[^A-Za-z0-9]', '_', parsed_args.name)
            self.app.stdout.write(BASH.replace('FUNCTION', function).replace('NAME', parsed_args.name))
            return
        try:
            found = list(_Line(self.app, parsed_args.given).offered())
        except CliError:  # nothing is to be written between what is typed
            found = []
        self.app.stdout.writelines(f'{each}\n' for each in found)


def _name(text: str) -> str:
    if not re.fullmatch('[A-Za-z0-9._-]+', text):
        raise argparse.ArgumentTypeError(f'{text!r} is no name of a command')
    return text


@dataclasses.dataclass
class _Line:
    """What was typed so far, after the command's own name.

    :ivar given: its words, the last of which is to be completed and may be empty
    """

    app: Any
    given: Sequence[str]

    def offered(self) -> Iterable[str]:
        """What the last word may become.

        :raises Failure: when the API cannot say
        """
        *before, begun = self.given or ['']
        everywhere = _options(self.app.parser)
        words, before_value = _without_options(before, everywhere)
        if before_value is not None:
            return self._values(everywhere[before_value], begun, [])
        offered: list[str] = [name for name in everywhere if begun.startswith('-') and name.startswith(begun)]
        name = next((name for size in range(len(words), 0, -1) if (name := ' '.join(words[:size])) in COMMANDS), None)
        if not begun.startswith('-'):
            offered += self._commands(words, begun)
        if name is None:
            return sorted(set(offered))
        parser = COMMANDS[name].load()(self.app, None).get_parser(name)
        options = _options(parser)
        rest, before_value = _without_options(words[len(name.split()):], options)
        if before_value is not None:
            return self._values(options[before_value], begun, rest)
        if begun.startswith('-'):
            return sorted({*offered, *(each for each in options if each.startswith(begun))})
        action = _positional(parser, len(rest))
        found = [] if action is None else self._values(action, begun, rest)
        return sorted({*offered, *found})

    @staticmethod
    def _commands(words: Sequence[str], begun: str) -> Iterable[str]:
        """The next word of commands that begin with *words*."""
        for name in COMMANDS:
            parts = name.split()
            if parts[:len(words)] == list(words) and len(parts) > len(words) and parts[len(words)].startswith(begun):
                yield parts[len(words)]

    def _values(self, action: argparse.Action, begun: str, rest: Sequence[str]) -> Iterable[str]:
        """What may stand for an argument: one of its choices, or the name of something that there is."""
        if action.choices is not None:
            return sorted(each for each in map(str, action.choices) if each.startswith(begun))
        source = _SOURCES.get(str(action.metavar))
        if action.option_strings == ['--cloud']:
            found: Iterable[str] = clouds.names(os.environ)
        elif source is not None:
            settings = self.app.settings
            found = source(Client(settings.url, PATIENCE, settings), begun, rest)
        else:
            found = ()
        return sorted(each for each in set(found) if each.startswith(begun))[:MOST]


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {name: action for action in parser._actions if action.help != argparse.SUPPRESS
            for name in action.option_strings}


def _without_options(words: Sequence[str], options: Mapping[str, argparse.Action]) -> tuple[list[str], str | None]:
    """*words* without these options and their values, and the option that the next word is the value of, if any."""
    left: list[str] = []
    waiting: str | None = None
    for word in words:
        if waiting is not None:
            waiting = None
        elif word in options:
            waiting = word if options[word].nargs is None else None
        elif word.partition('=')[0] not in options:
            left.append(word)
    return left, waiting


def _positional(parser: argparse.ArgumentParser, number: int) -> argparse.Action | None:
    """The argument that is the next after *number* others."""
    actions = [action for action in parser._actions if not action.option_strings]
    if number < len(actions):
        return actions[number]
    return actions[-1] if actions and actions[-1].nargs in ('*', '+') else None


def _zones(client: Client, begun: str, rest: Sequence[str]) -> Iterable[str]:
    found: list[Json] = client.get('/v2/zones', name=f'{begun}*', limit=MOST)['zones']
    return (each['name'] for each in found)


def _recordsets(client: Client, begun: str, rest: Sequence[str]) -> Iterable[str]:
    """Names in the zone that stands before, without the zone's."""
    if not rest:
        return ()
    zone = client.zone(rest[0])
    wanted = '*' if begun in ('', '@') else f'{begun}*'
    found = client.get(f'/v2/zones/{zone["id"]}/recordsets', name=wanted, limit=MOST)['recordsets']
    return (each['name'].removesuffix(zone['name']).rstrip('.') or '@' for each in found)


def _servers(client: Client, begun: str, rest: Sequence[str]) -> Iterable[str]:
    return (each['name'] for each in client.get('/v2/servers')['servers'])


def _plans(client: Client, begun: str, rest: Sequence[str]) -> Iterable[str]:
    return (each['id'].replace('-', '')[:8] for each in client.get('/v2/plans', limit=MOST)['plans'])


def _named(path: str) -> Callable[[Client, str, Sequence[str]], Iterable[str]]:
    return lambda client, begun, rest: (
        each['name'] for each in client.get(f'/v2/{path}', limit=MOST)[path])


#: Where the names are that an argument may have, by how its help calls it.
_SOURCES: Mapping[str, Callable[[Client, str, Sequence[str]], Iterable[str]]] = {
    'ZONE': _zones, 'RECORDSET': _recordsets, 'SERVER': _servers, 'PLAN': _plans, 'POOL': _named('pools'),
    'KEY': _named('tsigkeys'), 'TYPE': lambda client, begun, rest: TYPES,
}
