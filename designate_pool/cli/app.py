"""The application: the options of all commands, the help and the exit codes."""

from __future__ import annotations

import argparse
import functools
import heapq
import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cliff import app, commandmanager, complete, help, utils

from designate_pool import __version__
from designate_pool.cli import connection, terminal
from designate_pool.cli.command_table import COMMANDS, GROUPS, NAMESPACE
from designate_pool.cli.connection import CliError

if TYPE_CHECKING:
    from designate_pool.cli.client import Client

EXIT_CODES = """\
Exit codes:
  0    success; with --wait: enough servers have the change
  1    failure or refusal; of 'server resync' and others: there are differences
  2    wrong usage; of 'plan --detailed-exitcode', 'compare' and 'report': there are differences
  3    with --wait: ERROR
  4    with --wait: timeout
  5    with --wait: the change waits, since its pool is frozen
  130  Ctrl-C
"""


class Shell(app.App):
    """``designate-pool``."""

    NAME = 'designate-pool'

    def __init__(self, **streams: Any) -> None:
        manager = commandmanager.CommandManager(NAMESPACE)
        super().__init__('Zones, recordsets and servers of a pool of DNS servers.', __version__, manager,
                         deferred_help=True, **streams)
        # Ours replace cliff's of the same name.
        manager.commands.update(COMMANDS)

    def build_option_parser(self, description: str | None, version: str | None,
                            argparse_kwargs: dict[str, Any] | None = None) -> argparse.ArgumentParser:
        # A command's --all is not short for --all-projects.
        parser_options = {'prog': self.NAME, 'allow_abbrev': False, **(argparse_kwargs or {})}
        parser = super().build_option_parser(description, version, parser_options)
        connection.add_options(parser)
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        if not argv and not self.options.deferred_help:  # cliff would start its interactive mode
            raise CliError("No command was given; 'designate-pool --help' shows them.")
        if argv[:1] == ['help']:  # of --help: the rest may be any command line
            argv[1:] = (word for word in argv[1:] if not word.startswith('-'))
        self._words = argv[1:] if argv[:1] == ['help'] else argv

    def get_fuzzy_matches(self, cmd: str) -> list[str]:
        """The three commands nearest to what was typed; all of a group whose name alone was typed."""
        words = self._words
        if matches := [name for name in COMMANDS if name.startswith(f'{" ".join(words)} ')]:
            return matches
        begins = any(name.startswith(f'{words[0]} ') for name in COMMANDS)

        def distance(name: str) -> int:
            without_noun = '' if begins else name.partition(' ')[2]  # 'explain' is 'zone explain'
            return min(int(utils.damerau_levenshtein(' '.join(words[:len(part.split())]), part, utils.COST))
                       for part in (name, without_noun) if part)

        return heapq.nsmallest(3, COMMANDS, key=distance)

    @functools.cached_property
    def settings(self) -> connection.ApiConnection:
        """Where the API is and who asks; CliError for a cloud that does not exist, or a malformed file."""
        return connection.resolve(self.options, os.environ, lambda text: self.stderr.write(f'{text}\n'))

    @functools.cached_property
    def client(self) -> Client:
        """The client of the API, made when a command first asks for it: some do without."""
        from designate_pool.cli.client import Client

        return Client(self.settings.url, settings=self.settings, tell=self.stderr.write)

    def print_help_if_requested(self) -> None:
        if self.options.deferred_help:
            self.print_help()

    def print_help(self) -> NoReturn:
        """Show all commands, and end."""
        coloured = terminal.wanted(self.stdout)
        self.parser.print_help(self.stdout)
        self.stdout.writelines(f'{line}\n' for line in self._all_commands(coloured))
        self.stdout.write(f'\n{EXIT_CODES}\nThe help of a command: designate-pool COMMAND --help\n')
        raise help.HelpExit()

    def _all_commands(self, coloured: bool) -> Iterator[str]:
        width = max(len(name) for name in COMMANDS)
        columns = max(60, shutil.get_terminal_size().columns)
        for heading, group in GROUPS.items():
            yield ''
            yield terminal.paint(f'{heading}:', terminal.BOLD) if coloured else f'{heading}:'
            for name in group:
                summary = (inspect.getdoc(COMMANDS[name].load()) or '').partition('\n')[0].removesuffix('.')
                first, *more = textwrap.wrap(summary, columns - width - 5)
                name = name.ljust(width)
                yield f'  {terminal.paint(name, terminal.CYAN) if coloured else name}  {first}'
                yield from (' ' * (width + 4) + line for line in more)


class HelpCommand(help.HelpCommand):
    """Show the help of a command."""

    app: Shell

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        words = parsed_args.cmd
        if not words:
            self.app.print_help()
        try:
            self.app.command_manager.find_command(words)
        except ValueError:
            parsed_args.cmd = [' '.join(words)]  # a group of several words
            if not any(name.startswith(parsed_args.cmd[0]) for name in COMMANDS):
                return self.app.run_subcommand(words)
        return super().take_action(parsed_args)


#: Prints what bash needs to complete commands and options.
CompleteCommand = complete.CompleteCommand


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    return Shell().run(list(sys.argv[1:] if argv is None else argv) or ['--help'])
