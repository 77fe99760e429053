"""What bash completes."""

from __future__ import annotations

import subprocess

import pytest

#: What the package bash-completion gives its functions.
WORDS = '_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cur="${COMP_WORDS[COMP_CWORD]}"; }'


@pytest.mark.parametrize('words, expected', [
    ('zon', ['zone']),
    ('zone expl', ['explain']),
    ('zone transfer accept l', ['list']),
    ('zone list --sta', ['--status']),
])
def test_in_bash(run, words, expected):
    function = run('complete', '--name', 'pool-command').out
    asked = f"""{WORDS}
        {function}
        COMP_WORDS=(pool-command {words}) COMP_CWORD={len(words.split())}
        _pool_command
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p pool-command"""
    ran = subprocess.run(['bash', '--norc', '-c', asked], capture_output=True, text=True, timeout=60)
    *found, registered = ran.stdout.splitlines()
    assert (found, ran.stderr) == (expected, '')
    assert registered == 'complete -F _pool_command pool-command'
