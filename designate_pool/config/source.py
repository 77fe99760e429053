"""The sections and options in the configuration files.

oslo.config ignores options that are not registered.  To find unknown options and repeated sections, the files are read
here a second time, with oslo.config's own INI parser.
"""

from __future__ import annotations

import collections
import glob
import os
from collections.abc import Iterable

from oslo_config import cfg, iniparser

from designate_pool.config.errors import ConfigErrors


class ConfigFile(iniparser.BaseParser):
    """The sections of one file.

    :ivar sections: the options by section, each with its text, as written
    :ivar repeated: sections whose heading occurs more than once
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.sections: dict[str, list[tuple[str, str]]] = {}
        self.repeated: list[str] = []
        self._options: list[tuple[str, str]] | None = None

    def new_section(self, section: str) -> None:
        if section in self.sections:
            self.repeated.append(section)
        self._options = self.sections.setdefault(section, [])

    def assignment(self, key: str, value: list[str]) -> None:
        if self._options is None:
            raise iniparser.ParseError('an option before the first section', self.lineno, '')
        self._options.append((key, '\n'.join(value).strip()))


class ConfigSource:
    """All files of a configuration.

    :ivar sections: option names by section, in the order of the files
    """

    def __init__(self, files: list[ConfigFile]) -> None:
        self.files = files
        self.sections: dict[str, list[str]] = collections.defaultdict(list)
        for file in files:
            for section, options in file.sections.items():
                names = dict.fromkeys([*self.sections[section], *(name for name, _ in options)])
                self.sections[section] = list(names)

    def note_repetitions(self, mistakes: ConfigErrors) -> None:
        """Note sections that occur twice in one file; a section may be continued in another file."""
        for file in self.files:
            for section in file.repeated:
                mistakes.add(section, None, f'the section occurs more than once in {file.path}')


def read(conf: cfg.ConfigOpts) -> ConfigSource:
    """The files that *conf* was read from: those of ``--config-file`` and ``--config-dir``, in oslo.config's order.

    :raises BadConfiguration: lists every folder that cannot be read, or every file that cannot be opened or parsed now
    """
    mistakes = ConfigErrors()
    names = list(conf.config_file or ())
    for folder in conf.config_dir or ():
        try:
            os.listdir(folder)  # glob(), here and in oslo.config, takes a folder that may not be read for empty
        except OSError as error:
            mistakes.add_line(f'{folder}: {error.strerror}')
        names.extend(sorted(glob.glob(os.path.join(folder, '*.conf'))))
    mistakes.raise_if_any()
    return read_files(names)


def read_files(names: Iterable[str]) -> ConfigSource:
    """The files with these *names*.

    :raises BadConfiguration: lists every file that cannot be opened or parsed, without the line, which may be a secret
    """
    mistakes = ConfigErrors()
    files = [ConfigFile(name) for name in names]
    for file in files:
        try:
            with open(file.path, encoding='utf-8') as lines:
                file.parse(lines)
        except iniparser.ParseError as error:
            mistakes.add_line(f'{file.path}: line {error.lineno}: {error.msg}')
        except UnicodeError:
            mistakes.add_line(f'{file.path}: not UTF-8 text')
        except OSError as error:
            mistakes.add_line(f'{file.path}: {error.strerror}')
    mistakes.raise_if_any()
    return ConfigSource(files)
