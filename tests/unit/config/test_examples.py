"""Every configuration that the project shows can be loaded, and the sample is not stale."""

from __future__ import annotations

import io
import pathlib
import re
import textwrap

import pytest
from oslo_config import cfg, generator

from designate_pool import backends
from designate_pool.config import load, pools
from designate_pool.errors import BadConfiguration
from designate_pool.rpc.broker import Messaging
from designate_pool.storage.sql.database import make_engine

ROOT = pathlib.Path(__file__).resolve().parents[3]
ETC = ROOT / 'etc'


def read(*paths: pathlib.Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    load.load(conf, [f'--config-file={path}' for path in paths], config_files=[])
    return conf


def test_the_sample_is_what_the_generator_makes_now() -> None:
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf([f'--config-file={ETC / "config-generator.conf"}'])
    made = io.StringIO()
    generator.generate(conf, output_file=made)
    sample = ETC / 'designate-pool.conf.sample'
    assert sample.read_text() == made.getvalue(), 'run "make sample"'


def test_the_sample_lacks_nothing_but_servers() -> None:
    conf = read(ETC / 'designate-pool.conf.sample')
    load.read_settings(conf)
    with pytest.raises(BadConfiguration, match=r'mistakes \(1\):\n.*the pool has no server'):
        pools.read_pool(conf, backends.options())


@pytest.mark.parametrize('name, is_signed, options', [
    ('bind9', True, {}), ('nsd', True, {'pattern': 'pool'}), ('knot', True, {'template': 'pool'}), ('pdns', True, {}),
    ('pdns-native', False, {'delete_pcent_threshold': 0.1}), ('octodns', False, {})])
def test_an_example_is_a_whole_configuration(name: str, is_signed: bool, options: dict[str, object],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PDNS_API_KEY', 'an-example-of-a-key')
    pool = pools.read_pool(read(ETC / f'example-{name}.conf'), backends.options())
    assert [server.host for server in pool.servers] == ['192.0.2.1', '198.51.100.1']
    for server in pool.servers:
        assert options.items() <= server.options.items() and (server.tsig_key or not is_signed)
        backends.build(server)
    if name in ('bind9', 'pdns'):
        assert {str(endpoint) for server in pool.servers for endpoint in server.primaries} == {'192.0.2.10:5354'}


def test_the_example_for_a_catalog_is_a_whole_configuration() -> None:
    pool = pools.read_pool(read(ETC / 'example-catalog.conf'), backends.options())
    assert pool.catalog_zone == 'catalog.pool.example.' and len(pool.servers) == 3
    assert all(backends.build(server).capabilities.reads_catalog for server in pool.servers)


def test_the_profile_goes_on_top() -> None:
    manager = load.read_settings(read(ETC / 'example-bind9.conf', ETC / 'profile-production.conf')).pool_manager
    assert (manager.poll_retry_interval, manager.poll_max_retries) == (15, 10)


def test_the_profile_for_clusters_goes_on_top_and_its_urls_can_be_used() -> None:
    path = ETC / 'profile-cluster.conf'
    load.read_settings(read(ETC / 'example-bind9.conf', path))
    urls = re.findall(r'^# connection = (.*)$', path.read_text(), re.MULTILINE)
    assert [make_engine(url).url.get_backend_name() for url in urls] == ['mysql', 'postgresql']
    conf = read(path)
    (transport_url,) = re.findall(r'^# transport_url = (.*)$', path.read_text(), re.MULTILINE)
    messaging = Messaging(conf, 'test', transport_url=transport_url)
    messaging.stop()
    assert conf.oslo_messaging_rabbit.rabbit_quorum_queue and conf.oslo_messaging_rabbit.heartbeat_rate == 3


def shown() -> list[tuple[str, str]]:
    """The configurations in the documents: fenced ``ini`` blocks of Markdown, ``code-block:: ini`` of Sphinx."""
    found = []
    for path in [*ROOT.glob('*.md'), *(ROOT / 'doc' / 'source').rglob('*.rst')]:
        text = path.read_text()
        blocks = re.findall(r'^```ini(?: .*)?\n(.*?)^```', text, re.DOTALL | re.MULTILINE)
        blocks += re.findall(r'^\.\. code-block:: ini\n(?:   :.*\n)*\n((?:[ ]+.*\n|\n)+)', text, re.MULTILINE)
        found += [(f'{path.relative_to(ROOT)} {number}', textwrap.dedent(block)) for number, block in enumerate(blocks)]
    return found


def test_configurations_in_documents_can_be_loaded(tmp_path: pathlib.Path) -> None:
    examples = shown()
    assert examples
    for name, text in examples:
        path = tmp_path / 'example.conf'
        path.write_text(text)
        conf = read(path)
        try:
            if '[backend:' in text and '[backend:zonelist:' not in text:  # that driver is of a package of its own
                pools.read_pool(conf, backends.options())
            load.read_settings(conf)
        except BadConfiguration as error:
            raise AssertionError(f'{name}: {error}') from error


def test_every_driver_has_a_page_with_its_options() -> None:
    pages = {path.stem: path.read_text() for path in (ROOT / 'doc' / 'source' / 'servers').glob('*.rst')}
    assert pages.keys() == backends.DRIVERS.keys()
    for driver, text in pages.items():
        assert re.findall(r'^\.\. server-options:: (.+)$', text, re.MULTILINE) == [driver]


def test_the_example_for_bind_and_its_named_conf_share_their_keys_and_addresses() -> None:
    conf = read(ETC / 'example-bind9.conf')
    server = pools.read_pool(conf, backends.options()).servers[0]
    named = (ETC / 'example-bind9.named.conf').read_text()
    assert server.tsig_key
    for key in (server.tsig_key.name.rstrip('.'), server.options['rndc_key_name']):
        assert f'key "{key}" {{' in named
    for secret in (server.tsig_key.secret, server.options['rndc_key_secret']):
        assert f'secret "{secret}";' in named
    assert f"inet {server.host} port {server.options['rndc_port']} allow" in named
    assert server.options['statistics_url'] == f'http://{server.host}:8053'
    assert f'inet {server.host} port 8053 allow' in named


def test_the_example_for_dynamic_updates_is_a_whole_configuration() -> None:
    pool = pools.read_pool(read(ETC / 'example-rfc2136.conf'), backends.options())
    assert [(server.host, server.options['update_port']) for server in pool.servers] == [
        ('192.0.2.1', None), ('198.51.100.1', 5353)]
    named = (ETC / 'example-rfc2136.named.conf').read_text()
    for server in pool.servers:
        assert server.tsig_key and f'secret "{server.tsig_key.secret}";' in named
        backends.build(server)
