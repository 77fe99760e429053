"""``designate-pool-nameserver``: the small secondary name server as a program.

It prints one line of JSON with its endpoints when it is ready, and stops at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pathlib
import sys
from collections.abc import Sequence

from designate_pool.cmd.compose import program
from designate_pool.cmd.compose.program import Signals
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.faults import KINDS, Fault
from designate_pool.nameserver.server import NameServer


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; the exit status, 1 when it cannot begin."""
    options = _parser().parse_args(argv)
    program.log_to_stderr(logging.DEBUG if options.debug else logging.INFO)
    signals = Signals()
    try:
        server = _server(options).start()
    except (InvalidField, OSError, UnicodeError) as error:
        print(f'designate-pool-nameserver: {error}', file=sys.stderr)
        return 1
    print(json.dumps({'listen': str(server.endpoint), 'control': str(server.control_endpoint), 'pid': os.getpid()}),
          flush=True)
    signals.wait_for_stop()
    server.stop()
    return 0


def _server(options: argparse.Namespace) -> NameServer:
    secret = options.secret_file.read_text(encoding='utf-8').strip()
    keys = [_key(path) for path in options.tsig_key_file]
    server = NameServer(options.listen, options.control, secret, state=options.state, keys=keys, retry=options.retry)
    for fault in options.fault:
        server.faults.set(fault)
    return server


def _parser() -> argparse.ArgumentParser:
    parser = program.argument_parser(
        'designate-pool-nameserver',
        'A small secondary name server with scripted faults, for demonstrations and rehearsals. Not for production.')
    parser.add_argument('--listen', type=program.endpoint, default=Endpoint('127.0.0.1', 0), metavar='ADDRESS:PORT',
                        help='where it answers DNS over UDP and TCP; port 0 takes any (default: 127.0.0.1:0)')
    parser.add_argument('--control', type=program.endpoint, default=Endpoint('127.0.0.1', 0), metavar='ADDRESS:PORT',
                        help='where its control socket is, on loopback (default: 127.0.0.1:0)')
    parser.add_argument('--secret-file', type=pathlib.Path, required=True, metavar='FILE',
                        help='holds the secret that the control socket asks for')
    parser.add_argument('--state', type=pathlib.Path, metavar='FOLDER',
                        help='keeps the zones through a restart; without it they are lost')
    parser.add_argument('--tsig-key-file', type=pathlib.Path, action='append', default=[], metavar='FILE',
                        help='a key as name:algorithm:base64; may be given more than once')
    parser.add_argument('--fault', type=_fault, action='append', default=[], metavar='KIND[=SECONDS][*COUNT][@ZONE]',
                        help=f'a fault to start with, one of {", ".join(KINDS)}; may be given more than once')
    parser.add_argument('--retry', type=float, default=30.0, metavar='SECONDS',
                        help='the longest wait before a failed transfer is tried again (default: 30)')
    parser.add_argument('--debug', action='store_true', help='log more')
    return parser


def _fault(text: str) -> Fault:
    try:
        return Fault.parse(text)
    except InvalidField as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _key(path: pathlib.Path) -> TsigKey:
    parts = path.read_text(encoding='utf-8').strip().split(':')
    if len(parts) != 3:
        raise InvalidField(field='tsig-key-file', why=f'{path} does not hold name:algorithm:base64')
    return TsigKey(*parts)


if __name__ == '__main__':
    sys.exit(main())
