"""``designate-pool-manage``: administration on the host itself: database, configuration, pools, tokens."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import pathlib
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from designate_pool import backends
from designate_pool.api.auth import keystone, policy
from designate_pool.backends.base import Backend, check_permissions
from designate_pool.central.signing.key_token import KeyToken
from designate_pool.cmd.compose import services
from designate_pool.cmd.manage import api_tokens, config_check
from designate_pool.cmd.programs import daemons
from designate_pool.cmd.takeover import commands as takeover_commands
from designate_pool.config import concurrency_choice, load, pools, sections, source, values
from designate_pool.config.errors import ConfigErrors
from designate_pool.errors import (BadConfiguration, DomainNotFound, InvalidField, KeyUnavailable, NotSigned, PoolError,
                                   PoolNotFound, Refused)
from designate_pool.minidns import acl
from designate_pool.model import TLS_PORT, Context, Domain, Endpoint, Finding, Option, PageRequest, Pool
from designate_pool.pool_manager.periodic import signature_audit
from designate_pool.pool_manager.verify import invariants, parent_servers
from designate_pool.protocol import tls, tsig
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.settings import KEYSTONE, CentralSettings, MiniDnsSettings
from designate_pool.storage.sql import migrate, secrets
from designate_pool.storage.sql.database import Storage, sqlite_files
from designate_pool.storage.sql.schema import tsigkeys, zone_keys
from designate_pool.storage.sql.secrets import SecretCipher

if TYPE_CHECKING:
    from designate_pool.central.service import Central

#: Rows that one transaction encrypts.
SECRETS_PER_TRANSACTION = 100

WHO = Context(user='manage', all_projects=True, may_approve=True)


def main(argv: Sequence[str] | None = None, conf: cfg.ConfigOpts = cfg.CONF) -> int:
    """Run one command; its exit status, 1 with a message when it fails."""
    daemons.silence_eventlet()
    conf.register_cli_opt(cfg.SubCommandOpt('command', title='commands', handler=_add_commands))
    try:
        load.load(conf, concurrency_choice.files_first(sys.argv[1:] if argv is None else argv),
                  about='Administration on the host itself: database, configuration, pools, tokens.')
        return int(conf.command.run(conf) or 0)
    except PoolError as error:
        print(error, file=sys.stderr)
    except Exception as error:  # of the database driver or alembic, whose classes only storage knows
        if conf.debug:
            raise
        print(f'{type(error).__name__}: {error}', file=sys.stderr)
    return 1


def database_upgrade(conf: cfg.ConfigOpts) -> None:
    """Create the tables, or upgrade them to a revision."""
    url = _settings(conf).database.connection
    migrate.upgrade(url, conf.command.revision)
    print(f'The database is at {migrate.current(url)}.')


def database_downgrade(conf: cfg.ConfigOpts) -> None:
    """Downgrade the tables to a revision; data that it cannot hold is lost."""
    url = _settings(conf).database.connection
    migrate.downgrade(url, conf.command.revision)
    print(f'The database is at {migrate.current(url)}.')


def database_version(conf: cfg.ConfigOpts) -> None:
    """Show the revision of the database and the one that this program needs."""
    url = _settings(conf).database.connection
    tables, newest = migrate.revisions(url), migrate.head()
    print(f'The database is at {tables.found}, this program needs {newest}.')
    if tables.found is not None and tables.found > newest:
        print(f'A newer version has upgraded it; this program {"can" if tables.serve(newest) else "cannot"} use it.')


def check_configuration(conf: cfg.ConfigOpts) -> int:
    """Report every mistake in the configuration; then check the servers, MiniDNS and the database."""
    pool = pools.read_pool(conf, backends.options())
    drivers = _drivers(pool)
    settings = load.read_settings(conf)
    sections.check_installed(settings.sink)
    # What programs load when they start.
    policy.OsloPolicy(conf)
    policy.check_policy_file(conf)
    if settings.api.auth == KEYSTONE:
        keystone.wrap(lambda environ, start_response: [], conf, values.secret)
    if conf.command.offline:
        number = f'{len(pool.servers)} server{"" if len(pool.servers) == 1 else "s"}'
        print(f'{number}: {", ".join(server.label for server in pool.servers)}')
        return 0
    with_secrets = [*(('[database] connection', path) for path in sqlite_files(settings.database.connection)),
                    ('[database] secrets_key_file', settings.database.secrets_key_file),
                    ('[service:central] signing_keys_file', settings.central.signing_keys_file),
                    *config_check.files_with_secrets(conf, backends.options())]
    about_files = [finding for name, path in with_secrets
                   if path is not None and (finding := check_permissions(name, path)) is not None]
    about_files += api_tokens.check_access(settings.api, conf)
    about_files += _check_tls(settings.minidns)
    about_files += _check_token(settings.central)
    if settings.api.auth == KEYSTONE:
        about_files += _check_api_tls(conf)
    report = config_check.check(pool, drivers, about_files, settings.database.connection,
                                settings.pool_manager, Threads(),
                                {TLS_PORT, *(endpoint.port for endpoint in settings.minidns.listen_tls)})
    print(report.json() if conf.command.json else report.text())
    return 0 if report.ok else 1


def check(conf: cfg.ConfigOpts) -> int:
    """Check invariants in the database and on every server; 0 all hold, 1 some do not, 2 not all could be checked.

    The servers of the configuration's pool are asked.  Of other pools only the rows in the database are checked: to
    check their servers too, run it with the configuration of each.
    """
    pool = pools.read_pool(conf, backends.options())
    drivers = _drivers(pool)
    settings = _settings(conf)
    with contextlib.closing(Storage(settings.database.connection)) as storage, config_check.quiet_drivers():
        migrate.check(storage)
        report = invariants.InvariantCheck(storage, pool, drivers, conf.command.patience).run()
    print(report.json() if conf.command.json else report.text())
    return report.code


def config_options(conf: cfg.ConfigOpts) -> None:
    """Print the options of sections of servers: those of all drivers, or of one."""
    tables: dict[str, Sequence[Option]] = {'every server': pools.GENERIC}
    tables |= {f'the driver {name}': backends.driver_class(name).OPTIONS
               for name in ([conf.command.driver] if conf.command.driver else backends.options())}
    for whose, options in tables.items():
        print(f'# Options of {whose}')
        for option in options:
            stands = 'required' if option.required else '' if option.default in (None, ()) else f'{option.default}'
            print(f'{option.name} ({option.kind}){f": {stands}" if stands else ""}\n    {option.help}')


def pool_list(conf: cfg.ConfigOpts) -> None:
    """List the pools."""
    with _central(conf) as (central, _):
        for pool in central.find_pools(WHO):
            print(f'{pool.name}  {pool.id}  {pool.description or ""}'.rstrip())


def pool_create(conf: cfg.ConfigOpts) -> None:
    """Create a pool; its servers come from the configuration of its pool managers."""
    with _central(conf) as (central, _):
        _print_pool(central.create_pool(WHO, {'name': conf.command.pool_name, **_pool_changes(conf)}))


def pool_delete(conf: cfg.ConfigOpts) -> None:
    """Delete a pool that has no zones; stop its programs before."""
    with _central(conf) as (central, _):
        central.delete_pool(WHO, _find_pool(central, conf.command.pool_name).id)


def pool_show(conf: cfg.ConfigOpts) -> None:
    """Show a pool as the database has it."""
    with _central(conf) as (central, settings):
        _print_pool(_find_pool(central, conf.command.pool_name or settings.pool_manager.pool_name))


def pool_set(conf: cfg.ConfigOpts) -> None:
    """Change a pool; new name servers give every zone of it new SOA and NS records."""
    with _central(conf) as (central, _):
        pool = _find_pool(central, conf.command.pool_name)
        _print_pool(central.update_pool(WHO, {'id': pool.id, **_pool_changes(conf)}))


def pool_renew(conf: cfg.ConfigOpts) -> None:
    """Give every zone of a pool a new serial: after the database was restored from a backup."""
    with _central(conf) as (central, _):
        _print_pool(central.renew_pool(WHO, _find_pool(central, conf.command.pool_name).id))


def secrets_rotate(conf: cfg.ConfigOpts) -> int:
    """Encrypt all secrets in the database with the first key of secrets_key_file, also those in clear text, and the
    private keys of zones with the first one of signing_keys_file; 1 if any had to be left as it is."""
    settings = _settings(conf)
    ours, central = settings.database, settings.central
    rounds = [round_ for round_ in (
        (tsigkeys.c.secret, SecretCipher(ours.secrets_keys), 'secret', ours.secrets_key_file),
        (zone_keys.c.private, SecretCipher(central.signing_keys, '[service:central] signing_keys_file'), 'private key',
         central.signing_keys_file)) if round_[-1]]
    if not rounds:
        raise BadConfiguration(count=1, listing='\n  [database] secrets_key_file: it must be given to encrypt secrets')
    failures = 0
    with contextlib.closing(Storage(ours.connection)) as storage:
        migrate.check(storage)
        for column, cipher, kind, path in rounds:
            done, after = 0, ''
            while outcomes := storage.run(secrets.rotate, column, cipher, after, SECRETS_PER_TRANSACTION):
                after = outcomes[-1][0]
                for row_id, error in outcomes:
                    if error is None:
                        done += 1
                    else:
                        failures += 1
                        print(f'{column.table.name} {row_id}: {error}', file=sys.stderr)
            print(f'{done} {kind}{"" if done == 1 else "s"} encrypted with the first key of {path}.')
    return 1 if failures else 0


def dnssec_export(conf: cfg.ConfigOpts) -> None:
    """Write the private keys of a zone, in clear text, to files that BIND, Knot DNS and PowerDNS read."""
    with _central(conf) as (central, _):
        zone = _find_zone(central, conf.command.zone)
        files = central.dnssec.export_keys(WHO, zone.id)
    if not files:
        raise NotSigned(domain=zone.name)
    for path in _write_keys(conf.command.folder, files):
        print(path)


def dnssec_import(conf: cfg.ConfigOpts) -> None:
    """Have a zone signed with the keys that it has elsewhere, or the keys of a signed zone followed by these.

    Each file has a private key, in BIND's format or as PEM, and beside it is one with the suffix .key in place of its
    own that has the DNSKEY record.
    """
    files = [_read_key(path) for path in conf.command.files]
    with _central(conf) as (central, _):
        signed = central.dnssec.import_keys(WHO, _find_zone(central, conf.command.zone).id, files, conf.command.policy)
        print(f'{signed.domain.name} {signed.state.state}: '
              f'{", ".join(sorted(f"{key.role} {key.tag} {key.state}" for key in signed.keys))}')


def dnssec_resume(conf: cfg.ConfigOpts) -> None:
    """Sign a zone again after the database was restored, if its keys are those that its servers and its parent have."""
    pool = pools.read_pool(conf, backends.options())
    with _central(conf) as (central, settings):
        domain, manager = _find_zone(central, conf.command.zone), settings.pool_manager
        zone = domain.name
        if domain.pool_name != pool.name:
            raise Refused('other_pool', f'{zone} is in the pool {domain.pool_name}, and this is the configuration of '
                                        f'{pool.name}: run it with that of {domain.pool_name}.', 409)
        served = [signature_audit.ask(server, Endpoint(server.host, server.port), [zone]).get(zone)
                  for server in pool.servers]
        dnskeys = None if None in served else {rdata for one in served if one is not None for _, rdata in one.keys}
        ds = {} if conf.command.force else parent_servers.probe_ds(zone, manager.parent_resolvers,
                                                                   manager.parent_servers)
        signed = central.dnssec.resume(WHO, domain.id, ds, dnskeys, conf.command.force)
        print(f'{signed.domain.name} {signed.state.state}')


def _write_keys(folder: str, files: Iterable[tuple[str, str, str]]) -> Iterator[pathlib.Path]:
    """Write keys to new files of a folder; the paths of those with private keys, which only their owner can read."""
    for name, public, private in files:
        for suffix, text, mode in (('private', private, 0o600), ('key', public, 0o644)):
            path = pathlib.Path(folder, f'{name}.{suffix}')
            try:
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 'w', encoding='ascii') as file:
                    file.write(text)
            except OSError as error:
                raise Refused('file', f'{path} cannot be written: {error.strerror}') from error
        yield pathlib.Path(folder, f'{name}.private')


def _read_key(path: str) -> tuple[str, str]:
    """The text of a file with a private key, and that of the file with its DNSKEY record beside it."""
    try:
        return pathlib.Path(path).read_text(), pathlib.Path(path).with_suffix('.key').read_text()
    except (OSError, ValueError) as error:
        raise Refused('file', f'{path} and the file with the suffix .key beside it cannot be read: {error}') from None


def token_create(conf: cfg.ConfigOpts) -> None:
    """Create a token for the API and print it: it is shown only this once, and stored nowhere."""
    path = _tokens_file(conf)
    print(api_tokens.create(path, conf.command.token_name, conf.command.project, conf.command.role,
                            conf.command.expires))
    api_tokens.warn_if_readable(path)


def token_list(conf: cfg.ConfigOpts) -> None:
    """List the tokens of the API, with project, roles and expiry."""
    print(api_tokens.listing(_tokens_file(conf), conf.command.json))


def token_revoke(conf: cfg.ConfigOpts) -> None:
    """Revoke a token; a running API refuses it from its next request on."""
    path = _tokens_file(conf)
    api_tokens.revoke(path, conf.command.token_name)
    api_tokens.warn_if_readable(path)


def _tokens_file(conf: cfg.ConfigOpts) -> str:
    path = load.read_settings(conf).api.tokens_file
    if not path:
        raise BadConfiguration(count=1, listing='\n  [service:api] tokens_file: it must be given to keep tokens in')
    return path


def _drivers(pool: Pool) -> dict[str, Backend]:
    """The driver of each server, by its id.

    :raises BadConfiguration: with every mistake that only the drivers and MiniDNS detect
    """
    mistakes = ConfigErrors()
    drivers, peers = {}, []
    for server in pool.servers:
        section = f'backend:{server.driver}:{uuid.UUID(server.id)}'
        try:
            drivers[server.id] = backends.build_for(pool, server)
            key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
            peers.append(acl.AllowedPeer(server.id, server.label, (), server.port, key))
        except InvalidField as error:
            mistakes.add(section, error.kwargs['field'], error.kwargs['why'])
    try:
        acl.make_acl(peers)
    except InvalidField as error:
        mistakes.add('service:minidns', None, f'it cannot serve these servers: {error.kwargs["why"]}')
    mistakes.raise_if_any()
    return drivers


def _check_tls(minidns: MiniDnsSettings) -> list[Finding]:
    """Whether MiniDNS could use its files for TLS, which only its own host needs."""
    try:
        if minidns.listen_tls:
            services.tls_context(minidns)
        tls.client_context(minidns.masters_ca)
    except (BadConfiguration, OSError) as error:
        words = f'[service:minidns] masters_ca: {tls.failure(error)}' if isinstance(error, OSError) else str(error)
        return [Finding(f'MiniDNS does not start here: {words}', 'correct it where MiniDNS runs', serious=False)]
    key = minidns.tls_key and check_permissions('[service:minidns] tls_key', minidns.tls_key)
    return [key] if key else []


def _check_api_tls(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Whether the API could use its files for TLS with Keystone and Neutron, which only its own host needs."""
    for section, option, key_option in (('keystone_authtoken', 'cafile', None),
                                        ('keystone_authtoken', 'certfile', 'keyfile'),
                                        ('network_api:neutron', 'ca_certificates_file', None),
                                        ('network_api:neutron', 'client_certificate_file', 'client_certificate_file')):
        path, key = conf[section][option], key_option and (conf[section][key_option] or conf[section][option])
        if not path or os.path.isdir(path) or key is None and conf[section].insecure:  # a folder, or not used
            continue
        try:
            if key is None:
                tls.client_context(path)
            else:
                tls.server_context(path, key)
        except OSError as error:
            yield Finding(f'the API asks nobody from here: [{section}] {option}: {tls.failure(error)}',
                          'correct it where the API runs', serious=False)
        else:
            if key and (finding := check_permissions(f'[{section}] {key_option}', key)):
                yield finding


def _check_token(central: CentralSettings) -> list[Finding]:
    """Whether Central could use keys in its token."""
    try:
        if central.pkcs11_module:
            KeyToken(central, Threads().compute).check()
    except (BadConfiguration, KeyUnavailable) as error:
        return [Finding(f'Central would not sign with keys in its token: {error}', 'correct it where Central runs')]
    return []


def _settings(conf: cfg.ConfigOpts) -> load.Settings:
    """The settings; creates the folder of the default database, which SQLite does not."""
    settings = load.read_settings(conf)
    state = settings.process.state_path
    if settings.database.connection.startswith(f'sqlite:///{state}/'):
        os.makedirs(state, exist_ok=True)
    return settings


@contextlib.contextmanager
def _central(conf: cfg.ConfigOpts) -> Iterator[tuple[Central, load.Settings]]:
    """Central on the database.  Its casts go to the broker; without one they are dropped, and the periodic pass of the
    pool manager finds the change in the database."""
    # Importing oslo.messaging takes a second, which the other commands do not need.
    from designate_pool.central.service import Central
    from designate_pool.rpc.broker import Messaging
    from designate_pool.rpc.change_announcer import ChangeAnnouncer

    settings = _settings(conf)
    storage = Storage(settings.database.connection, secrets_keys=settings.database.secrets_keys)
    has_broker = 'transport_url' in source.read(conf).sections['DEFAULT']
    caller: Any = Messaging(conf, settings.process.host) if has_broker else Direct(Threads().workers(1, 'casts'))
    central = Central(storage, PoolManagerClient(caller), Threads(), settings=settings.central,
                      announcer=ChangeAnnouncer(caller, Threads()))
    try:
        migrate.check(storage)
        yield central, settings
    finally:
        central.stop()
        caller.stop()
        storage.close()


def _find_pool(central: Central, name: str) -> Pool:
    for pool in central.find_pools(WHO, criterion={'name': name}):
        if pool.name == name:  # in a criterion, * stands for anything
            return pool
    raise PoolNotFound(pool=name)


def _find_zone(central: Central, name: str) -> Domain:
    name = f'{name.rstrip(".").lower()}.'
    domains = [domain for domain in central.find_domains(WHO, PageRequest(criterion={'name': name}))
               if domain.name == name]
    for domain in sorted(domains, key=lambda domain: domain.is_going):  # of a name, one may still be being deleted
        return domain
    raise DomainNotFound(domain=name)


def _pool_changes(conf: cfg.ConfigOpts) -> dict[str, Any]:
    values = {'name_servers': conf.command.name_server, 'also_notifies': conf.command.also_notify,
              'description': conf.command.description}
    return {field: value for field, value in values.items() if value is not None}


def _print_pool(pool: Pool) -> None:
    print(f'name:         {pool.name}')
    print(f'id:           {pool.id}')
    print(f'description:  {pool.description or ""}')
    print(f'name servers: {" ".join(pool.name_servers)}')
    if pool.also_notifies:
        print(f'also notify:  {", ".join(pool.also_notifies)}')


def _add_commands(commands: Any) -> None:
    database = _group(commands, 'database', 'the tables')
    _command(database, 'upgrade', database_upgrade).add_argument('revision', nargs='?', default='head')
    _command(database, 'downgrade', database_downgrade).add_argument(
        'revision', help='a revision; -1 for the one before, base for no tables')
    _command(database, 'version', database_version)
    configuration = _group(commands, 'config', 'the configuration')
    checks = _command(configuration, 'check', check_configuration)
    how = checks.add_mutually_exclusive_group()
    how.add_argument('--offline', action='store_true', help='check the files only, without connecting to anything')
    how.add_argument('--json', action='store_true', help='print what was found as one JSON document')
    _command(configuration, 'options', config_options).add_argument('driver', nargs='?', help='only this driver')
    sound = _command(commands, 'check', check)
    sound.add_argument('--patience', type=float, default=30.0, metavar='SECONDS',
                       help='how long to wait for operations under way to end; 30 if not given')
    sound.add_argument('--json', action='store_true', help='print what was found as one JSON document')
    _command(_group(commands, 'secrets', 'secrets in the database'), 'rotate', secrets_rotate)
    dnssec = _group(commands, 'dnssec', 'the private keys of signed zones')
    exporting = _command(dnssec, 'export', dnssec_export)
    exporting.add_argument('zone')
    exporting.add_argument('folder', help='where the files Kzone.+algorithm+tag.key and .private are written')
    importing = _command(dnssec, 'import', dnssec_import)
    importing.add_argument('zone')
    importing.add_argument('files', nargs='+', metavar='file')
    importing.add_argument('--policy', default='default', metavar='NAME',
                           help='a section [dnssec_policy:NAME] of the configuration; "default" if not given')
    resuming = _command(dnssec, 'resume', dnssec_resume)
    resuming.add_argument('zone')
    resuming.add_argument('--force', action='store_true', help='whatever keys its servers and its parent have')
    takeover_commands.add(_group(commands, 'designate', 'taking over from OpenStack Designate'), _command)
    token = _group(commands, 'token', 'the tokens of the API')
    making = _command(token, 'create', token_create)
    making.add_argument('token_name', metavar='name', help='a name for the token, for logs and to revoke it')
    making.add_argument('--project', required=True, help='the project whose zones it may use')
    making.add_argument('--role', action='extend', nargs='+', required=True,
                        help='reader, member, operator or admin, each of which may also do what those before it may; '
                             'or a role that a policy file uses')
    making.add_argument('--expires', metavar='DATE', help='as 2027-01-31 or 2027-01-31T12:00:00Z, in UTC; not given: '
                                                          'never')
    _command(token, 'list', token_list).add_argument('--json', action='store_true', help='print one JSON document')
    _command(token, 'revoke', token_revoke).add_argument('token_name', metavar='name')
    pool = _group(commands, 'pool', 'the pools and their name servers')
    _command(pool, 'list', pool_list)
    _command(pool, 'show', pool_show).add_argument('pool_name', metavar='name', nargs='?',
                                                   help='not given: the pool of the configuration')
    for changing in (_command(pool, 'create', pool_create), _command(pool, 'set', pool_set)):
        changing.add_argument('pool_name', metavar='name')
        changing.add_argument('--name-server', action='extend', nargs='+', metavar='HOST',
                              help='for the NS records, all of them, in place of those before; the first is also the '
                                   'primary of the SOA')
        changing.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE',
                              help="all other receivers of NOTIFYs, in place of those before, each as 'ADDRESS[:PORT] "
                                   "[key NAME]'")
        changing.add_argument('--description')
    _command(pool, 'renew', pool_renew).add_argument('pool_name', metavar='name')
    _command(pool, 'delete', pool_delete).add_argument('pool_name', metavar='name')


def _group(commands: Any, name: str, about: str) -> Any:
    return commands.add_parser(name, help=about).add_subparsers(title='commands', dest='verb', required=True)


def _command(group: Any, name: str, run: Any) -> argparse.ArgumentParser:
    about, _, more = (inspect.getdoc(run) or '').partition('\n\n')
    parser: argparse.ArgumentParser = group.add_parser(name, help=about, description=f'{about} {more}'.rstrip())
    parser.set_defaults(run=run)
    return parser


if __name__ == '__main__':
    sys.exit(main())
