from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.poll import MAKES, _arguments, read_dnsperf
from benchmarks.poll_ways import Asked, Counter, zone_names

#: As dnsperf 2.10 prints it.
PRINTED = '''
Statistics:

  Queries sent:         163934
  Queries completed:    163924 (99.99%)
  Queries lost:         10 (0.01%)

  Response codes:       NOERROR 163924 (100.00%)
  Average packet size:  request 40, response 115
  Run time (s):         2.000751
  Queries per second:   81931.234821
'''


def test_what_dnsperf_says_is_read() -> None:
    asked = read_dnsperf(PRINTED, 1.5)
    assert asked == Asked(163924, 10, 2.000751, 1.5) and round(asked.rate) == 81931


@pytest.mark.parametrize('printed', [
    '', PRINTED.replace('lost', 'found'), PRINTED.replace('NOERROR', 'REFUSED'),
    PRINTED.replace('NOERROR 163924 (100.00%)', 'NOERROR 163920 (99.99%), SERVFAIL 4 (0.01%)')])
def test_a_run_of_dnsperf_that_did_not_go_well_does_not_count(printed: str) -> None:
    with pytest.raises(AssertionError):
        read_dnsperf(printed, 1.5)


def test_every_zone_has_its_turn_and_what_is_wrong_counts_as_lost() -> None:
    names, pages = zone_names(100), []

    def ask(page: Sequence[str]) -> None:
        pages.append(page)
        counter.count(len(page) - 1, 1)

    counter = Counter(names, 0.05, ask)
    asked = counter.run()
    assert {name for page in pages for name in page} == set(names)
    assert (asked.queries, asked.lost) == (sum(map(len, pages)) - len(pages), len(pages)) and asked.seconds >= 0.05


def test_a_quick_run_is_small() -> None:
    usual, quick = _arguments([]), _arguments(['--quick'])
    assert (usual.zones, usual.makes, usual.rounds) == ((1000, 100_000), tuple(MAKES), 3)
    assert (quick.zones, quick.rounds, quick.seconds) == ((1000,), 1, 2.0)


def test_a_make_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _arguments(['--makes', 'knot,bind9'])
    assert 'bind9 is none of knot, nsd' in capsys.readouterr().err
