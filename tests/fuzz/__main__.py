"""``make fuzz MINUTES=m``: each target in turn for its share of the time; what breaks one is kept in a folder.

The corpus of the repository is read, and inputs that reach new code go to the folder of findings, where the next run
goes on from them.  Ends with 1 when an input broke something: it is named, with the end of the trace.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

CORPUS = pathlib.Path(__file__).parent / 'corpus'
#: Seconds that one input may take, and MiB that a target may have; octets of an input.
TIMEOUT, MEMORY, LONGEST = 10, 1024, 4096


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m tests.fuzz', description=__doc__.partition('\n')[0])
    parser.add_argument('--minutes', type=float, default=10.0, help='for all targets together')
    parser.add_argument('--targets', nargs='+', metavar='TARGET',
                        default=sorted(each.name for each in CORPUS.iterdir()))
    parser.add_argument('--folder', type=pathlib.Path, default=pathlib.Path('.fuzz'), help='for what is found')
    given = parser.parse_args(arguments)
    seconds = max(5, round(given.minutes * 60 / len(given.targets)))
    broken = [name for name in given.targets if not _run(name, given.folder / name, seconds)]
    if broken:
        print(f'Inputs broke {", ".join(broken)}: put each into {CORPUS.name}/TARGET, and mend what it shows.')
    return int(bool(broken))


def _run(name: str, folder: pathlib.Path, seconds: int) -> bool:
    """Whether a target stood all that was tried in *seconds*."""
    (folder / 'new').mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, '-m', 'tests.fuzz.engine', name, str(folder / 'new'), str(CORPUS / name),
         f'-max_total_time={seconds}', f'-timeout={TIMEOUT}', f'-rss_limit_mb={MEMORY}', f'-max_len={LONGEST}',
         f'-artifact_prefix={folder}/', '-print_final_stats=1', '-verbosity=0'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', timeout=seconds + 300)
    tried = re.search(r'number_of_executed_units:\s*(\d+)', done.stdout)
    new = len(list((folder / 'new').iterdir()))
    print(f'{name:20} {int(tried[1]) if tried else 0:10,} inputs in {seconds} s, {new} reached new code', flush=True)
    if done.returncode:
        print(done.stdout[-3000:], flush=True)
    return not done.returncode


if __name__ == '__main__':
    sys.exit(main())
