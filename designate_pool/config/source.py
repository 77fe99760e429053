"""The sections and option names in the configuration files, without their values.

oslo.config ignores options that are not registered.  To find unknown options and repeated sections, the files are read
here a second time, with oslo.config's own INI parser.
"""

from __future__ import annotations

import collections
import glob
import os
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg, iniparser

from designate_pool.config.errors import ConfigErrors


class Unreadable(ValueError):
    """A file that cannot be parsed; the text says where and why.  It does not quote the line, which may be a secret."""


class ConfigFile(iniparser.BaseParser):
    """The sections of one file and the names of their options.

    :ivar sections: option names by section, as written
    :ivar repeated: sections whose heading occurs more than once
    :raises Unreadable: when it cannot be opened or parsed
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.sections: dict[str, list[str]] = {}
        self.repeated: list[str] = []
        self._section: str | None = None
        try:
            with open(path, encoding='utf-8') as lines:
                self.parse(lines)
        except iniparser.ParseError as error:
            raise Unreadable(f'{path}: line {error.lineno}: {error.msg}') from None
        except UnicodeError:
            raise Unreadable(f'{path}: not UTF-8 text') from None
        except OSError as error:
            raise Unreadable(f'{path}: {error.strerror}') from None

    def new_section(self, section: str) -> None:
        if section in self.sections:
            self.repeated.append(section)
        self.sections.setdefault(section, [])
        self._section = section

    def assignment(self, key: str, value: list[str]) -> None:
        if self._section is None:
            raise iniparser.ParseError('an option before the first section', self.lineno, '')
        self.sections[self._section].append(key)


class ConfigSource:
    """All files of a configuration.

    :ivar sections: option names by section, in the order of the files
    """

    def __init__(self, files: list[ConfigFile]) -> None:
        self.files = files
        self.sections: dict[str, list[str]] = collections.defaultdict(list)
        for file in files:
            for section, options in file.sections.items():
                self.sections[section].extend(option for option in options if option not in self.sections[section])

    def note_repetitions(self, mistakes: ConfigErrors) -> None:
        """Note sections that occur twice in one file; a section may be continued in another file."""
        for file in self.files:
            for section in file.repeated:
                mistakes.add(section, None, f'the section occurs more than once in {file.path}')


def read(conf: cfg.ConfigOpts) -> ConfigSource:
    """The files that *conf* was read from.

    :raises BadConfiguration: lists every folder that cannot be read, or every file that cannot be opened or parsed now
    """
    mistakes = ConfigErrors()
    for folder in conf.config_dir or ():
        try:
            os.listdir(folder)  # glob(), here and in oslo.config, takes a folder that may not be read for empty
        except OSError as error:
            mistakes.add_file(f'{folder}: {error.strerror}')
    mistakes.raise_if_any()
    return read_files(paths(conf))


def read_files(names: Iterable[str]) -> ConfigSource:
    """The files with these *names*.

    :raises BadConfiguration: lists every file that cannot be opened or parsed
    """
    mistakes = ConfigErrors()
    files = []
    for name in names:
        try:
            files.append(ConfigFile(name))
        except Unreadable as error:
            mistakes.add_file(str(error))
    mistakes.raise_if_any()
    return ConfigSource(files)


def paths(conf: Any) -> list[str]:
    """The files of ``--config-file`` and ``--config-dir``, in oslo.config's order."""
    files = list(conf.config_file or ())
    for folder in conf.config_dir or ():
        files.extend(sorted(glob.glob(os.path.join(folder, '*.conf'))))
    return files
