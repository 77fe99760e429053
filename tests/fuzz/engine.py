"""One target under atheris: ``python -m tests.fuzz.engine TARGET FOLDER... -OPTION=VALUE...``, as libFuzzer takes them.

The product is instrumented while it is imported, so nothing of it may be imported before.
"""

from __future__ import annotations

import sys

import atheris


def main() -> None:
    name, *arguments = sys.argv[1:]
    with atheris.instrument_imports(include=['designate_pool']):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


if __name__ == '__main__':
    main()
