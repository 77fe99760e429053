"""Completion in bash, which asks the command itself, so options, zones and servers are always up to date."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from designate_pool.cli import connection
from designate_pool.cli.base import ApiCommand, Argument
from designate_pool.cli.client import Client, Json
from designate_pool.cli.command_table import COMMANDS
from designate_pool.cli.connection import CliError

#: Seconds that the API may take: the user has pressed Tab and waits.
TIMEOUT = 3.0
#: Names that are offered at most.
MOST_NAMES = 100
TYPES = ('A', 'AAAA', 'CAA', 'CNAME', 'DNAME', 'DS', 'HTTPS', 'LOC', 'MX', 'NAPTR', 'NS', 'PTR', 'SPF', 'SRV', 'SSHFP',
         'SVCB', 'TLSA', 'TXT')
#: A colon ends a word in bash, so only the part of a name behind it is completed.
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


def _name(text: str) -> str:
    if not re.fullmatch('[A-Za-z0-9._-]+', text):
        raise argparse.ArgumentTypeError(f'{text!r} is no name of a command')
    return text


class Complete(ApiCommand):
    """Print what a shell needs to complete the command.

    For bash: source <(designate-pool complete), in ~/.bashrc for good.
    """

    arguments = (
        Argument('--name', default='designate-pool', type=_name, help='what the command is called in the shell; '
                                                                      'designate-pool if not given'),
        Argument('--words', action='store_true', help=argparse.SUPPRESS),
        Argument('given', nargs='*', help=argparse.SUPPRESS))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if not parsed_args.words:
            function = 'complete_' + re.sub('[^A-Za-z0-9]', '_', parsed_args.name)
            self.app.stdout.write(BASH.replace('FUNCTION', function).replace('NAME', parsed_args.name))
            return
        try:
            completions = list(_TypedLine(self.app, parsed_args.given).completions())
        except CliError:  # nothing may be written into the line that is typed
            completions = []
        self.app.stdout.writelines(f'{completion}\n' for completion in completions)


@dataclasses.dataclass
class _TypedLine:
    """What was typed so far, after the command's own name; the last of the words may be empty."""

    app: Any
    typed: Sequence[str]

    def completions(self) -> Iterable[str]:
        """What the last word may become; CliError when the API does not answer."""
        *before, prefix = self.typed or ['']
        everywhere = _options(self.app.parser)
        words, before_value = _without_options(before, everywhere)
        if before_value is not None:
            return self._values(everywhere[before_value], prefix, [])
        matches: list[str] = [name for name in everywhere if prefix.startswith('-') and name.startswith(prefix)]
        name = next((name for size in range(len(words), 0, -1) if (name := ' '.join(words[:size])) in COMMANDS), None)
        if not prefix.startswith('-'):
            matches += self._commands(words, prefix)
        if name is None:
            return sorted(set(matches))
        parser = COMMANDS[name].load()(self.app, None).get_parser(name)
        options = _options(parser)
        rest, before_value = _without_options(words[len(name.split()):], options)
        if before_value is not None:
            return self._values(options[before_value], prefix, rest)
        if prefix.startswith('-'):
            return sorted({*matches, *(option for option in options if option.startswith(prefix))})
        action = _positional(parser, len(rest))
        return sorted({*matches, *(() if action is None else self._values(action, prefix, rest))})

    @staticmethod
    def _commands(words: Sequence[str], prefix: str) -> Iterable[str]:
        """The next word of commands that begin with *words*."""
        for name in COMMANDS:
            parts = name.split()
            if parts[:len(words)] == list(words) and len(parts) > len(words) and parts[len(words)].startswith(prefix):
                yield parts[len(words)]

    def _values(self, action: argparse.Action, prefix: str, rest: Sequence[str]) -> Iterable[str]:
        """Values of an argument: its choices, or the names of existing things."""
        if action.choices is not None:
            return sorted(choice for choice in map(str, action.choices) if choice.startswith(prefix))
        source = _SOURCES.get(str(action.metavar))
        if action.option_strings == ['--cloud']:
            names: Iterable[str] = connection.names(os.environ)
        elif source is not None:
            api_settings = self.app.settings
            names = source(Client(api_settings.url, TIMEOUT, api_settings), prefix, rest)
        else:
            names = ()
        return sorted(name for name in set(names) if name.startswith(prefix))[:MOST_NAMES]


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {name: action for action in parser._actions if action.help != argparse.SUPPRESS
            for name in action.option_strings}


def _without_options(words: Sequence[str], options: Mapping[str, argparse.Action]) -> tuple[list[str], str | None]:
    """*words* without these options and their values, and the option that the next word is the value of, if any."""
    remaining: list[str] = []
    option: str | None = None
    for word in words:
        if option is not None:
            option = None
        elif word in options:
            option = word if options[word].nargs is None else None
        elif word.partition('=')[0] not in options:
            remaining.append(word)
    return remaining, option


def _positional(parser: argparse.ArgumentParser, number: int) -> argparse.Action | None:
    """The argument that is the next after *number* others."""
    actions = [action for action in parser._actions if not action.option_strings]
    if number < len(actions):
        return actions[number]
    return actions[-1] if actions and actions[-1].nargs in ('*', '+') else None


def _zones(client: Client, prefix: str, rest: Sequence[str]) -> Iterable[str]:
    zones: list[Json] = client.get('/v2/zones', name=f'{prefix}*', limit=MOST_NAMES)['zones']
    return (zone['name'] for zone in zones)


def _recordsets(client: Client, prefix: str, rest: Sequence[str]) -> Iterable[str]:
    """Names in the zone that was typed before, relative to it."""
    if not rest:
        return ()
    zone = client.zone(rest[0])
    pattern = '*' if prefix in ('', '@') else f'{prefix}*'
    recordsets = client.get(f'/v2/zones/{zone["id"]}/recordsets', name=pattern, limit=MOST_NAMES)['recordsets']
    return (recordset['name'][:-len(zone['name'])].rstrip('.') or '@' for recordset in recordsets)


def _servers(client: Client, prefix: str, rest: Sequence[str]) -> Iterable[str]:
    return (server['name'] for server in client.get('/v2/servers')['servers'])


def _ids_of(key: str) -> Callable[[Client, str, Sequence[str]], Iterable[str]]:
    return lambda client, prefix, rest: (entry['id'].replace('-', '')[:8]
                                         for entry in client.get(f'/v2/{key}', limit=MOST_NAMES)[key])


def _names_of(path: str) -> Callable[[Client, str, Sequence[str]], Iterable[str]]:
    return lambda client, prefix, rest: (entry['name'] for entry in client.get(f'/v2/{path}', limit=MOST_NAMES)[path])


#: What finds the names for an argument, by its metavar.
_SOURCES: Mapping[str, Callable[[Client, str, Sequence[str]], Iterable[str]]] = {
    'ZONE': _zones, 'RECORDSET': _recordsets, 'SERVER': _servers, 'PLAN': _ids_of('plans'), 'POOL': _names_of('pools'),
    'CHANGE': _ids_of('changes'), 'KEY': _names_of('tsigkeys'), 'TLD': _names_of('tlds'),
    'TYPE': lambda client, prefix, rest: TYPES,
}
