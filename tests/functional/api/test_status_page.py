"""The status pages in a browser: one pool of two servers.

With ``DESIGNATE_POOL_SCREENSHOTS`` naming a folder, the pictures of the documentation are written there.
"""

from __future__ import annotations

import os
import pathlib
import re
import uuid
from collections.abc import Iterator

import pytest
import requests
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from designate_pool.model import new_id
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.browser import DARK, LIGHT, NARROW, USUAL, Browser, browser
from tests.fixtures.nameservers import SecondaryServer

pytestmark = pytest.mark.slow

ZONE = 'example.com.'
SCREENSHOTS = os.environ.get('DESIGNATE_POOL_SCREENSHOTS')


@pytest.fixture(scope='module')
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SecondaryServer]]:
    started = [SecondaryServer(tmp_path_factory.mktemp(name), keep=True).start() for name in ('ns1', 'ns2')]
    yield started
    for server in started:
        server.stop()


@pytest.fixture(scope='module')
def stack(servers: list[SecondaryServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('status')
    sections = [server.section(str(uuid.UUID(new_id())), call_timeout=2) for server in servers]
    with Stack(folder / 'stack', sections, f'sqlite:///{folder}/database.sqlite', threshold=50) as started:
        yield started


@pytest.fixture(scope='module')
def zone(stack: Stack) -> str:
    """The id of a zone that both servers serve."""
    zones = [stack.create_zone(name) for name in (ZONE, 'example.net.', 'example.org.')]
    for each in zones:
        assert stack.request('GET', f'/v2/zones/{each["id"]}/wait?servers=2&timeout=60', 200)['done']
    return str(zones[0]['id'])


@pytest.fixture(scope='module')
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def page(chromium: Browser) -> Browser:
    chromium.look()
    chromium.scripts(True)
    chromium.complaints()
    return chromium


def label(server: SecondaryServer) -> str:
    return f'secondary:{server.host}:{server.port}'


def show(page: Browser, stack: Stack, path: str = '/status') -> None:
    page.driver.get(stack.url + path)


def row(page: Browser, section: str, first: str) -> str:
    """The text of the row of a section's table that begins with *first*; empty when there is none."""
    return next((each.text for each in page.driver.find_elements(By.CSS_SELECTOR, f'#{section} tbody tr')
                 if each.text.startswith(first)), '')


def test_a_change_made_by_the_api_appears_without_reloading(stack: Stack, zone: str, page: Browser) -> None:
    show(page, stack)
    assert page.driver.title == 'Pool default'
    assert not row(page, 'changes', 'appears.example.com.')
    made = stack.create_zone('appears.example.com.')
    wait_until(lambda: 'ACTIVE' in page.run(
        'return [...document.querySelectorAll("#changes tbody tr")].map((each) => each.innerText)'
        '.find((each) => each.startsWith(arguments[0])) || ""', 'appears.example.com.'), 'the page shows the zone', 60)
    stack.delete_zone(made['id'])
    stack.wait_for(made['id'], 'gone')


@pytest.mark.parametrize('path', [f'/status/zones/{ZONE}', '/status/zones/Example.com', 'by id', 'by search'])
def test_one_domain(stack: Stack, zone: str, page: Browser, servers: list[SecondaryServer], path: str) -> None:
    if path == 'by search':
        show(page, stack)
        page.driver.find_element(By.NAME, 'name').send_keys('example.com', Keys.ENTER)
        wait_until(lambda: page.driver.title == ZONE, 'the page of the zone')
    else:
        show(page, stack, f'/status/zones/{zone}' if path == 'by id' else path)
    assert page.driver.title == ZONE
    assert 'is ACTIVE at serial' in page.driver.find_element(By.ID, 'summary').text
    for server in servers:
        assert 'SUCCESS' in row(page, 'servers', label(server))
        assert f'{label(server)}\nIt was last seen to serve serial' in page.driver.find_element(By.ID, 'servers').text
    facts = page.driver.find_element(By.ID, 'facts').text
    assert 'Recordsets\n2' in facts and zone in facts
    assert 'The pool agreed on serial' in page.driver.find_element(By.ID, 'history').text
    assert 'CREATE' in page.driver.find_element(By.ID, 'versions').text


def test_a_stopped_server_turns_up_and_so_does_its_return(stack: Stack, zone: str, page: Browser,
                                                          servers: list[SecondaryServer]) -> None:
    stopped = servers[1]
    stopped.stop()
    try:
        stack.create_recordset(zone, f'www.{ZONE}', 'A', '192.0.2.1')

        def failing() -> bool:
            show(page, stack)
            return 'failing' in row(page, 'servers', label(stopped)) and ZONE in row(page, 'failing', ZONE)

        wait_until(failing, 'the server is shown as failing', 60)
        # That the connection is refused is told by ICMP, which a query may go without.
        assert re.search('connection refused|it has not answered DNS', row(page, 'failing', ZONE))
        assert 'failing' not in row(page, 'servers', label(servers[0]))
        assert f'on {label(stopped)}' in page.driver.find_element(By.ID, 'summary').text
        assert no_faults(page)
        picture(page, 'status-pool')
        show(page, stack, f'/status/zones/{zone}')
        assert 'degraded' in page.driver.find_element(By.ID, 'summary').text
        assert re.search('check (that|whether) the server runs', page.driver.find_element(By.ID, 'advice').text)
        assert 'ERROR' in row(page, 'servers', label(stopped))
        assert f'{label(stopped)}\nIt failed at getting to serial' in page.driver.find_element(By.ID, 'servers').text
        assert no_faults(page)
        picture(page, 'status-zone')
    finally:
        stopped.start()

    def well() -> bool:
        show(page, stack)
        return 'every one has all' in page.driver.find_element(By.ID, 'summary').text

    wait_until(well, 'the server is shown as well again', 60)
    assert 'Nothing fails' in page.driver.find_element(By.ID, 'failing').text


@pytest.mark.parametrize('path', ['/status', f'/status/zones/{ZONE}', '/status/zones/nowhere'])
@pytest.mark.parametrize(('width', 'scheme'), [(USUAL, LIGHT), (USUAL, DARK), (900, LIGHT), (NARROW, LIGHT),
                                               (NARROW, DARK)])
def test_nobody_is_kept_out(stack: Stack, zone: str, page: Browser, path: str, width: int, scheme: str) -> None:
    page.look(width, scheme)
    show(page, stack, path)
    assert page.faults() == []
    assert page.run('return document.documentElement.scrollWidth') <= width
    if width > NARROW:  # nothing lies beyond the edge of a table's frame
        assert page.run('return [...document.querySelectorAll(".scroll")].filter(frame => frame.scrollWidth > '
                        'frame.clientWidth).map(frame => frame.textContent)') == []
    if path == '/status' and (width, scheme) in ((NARROW, LIGHT), (USUAL, DARK)):
        picture(page, f'status-pool-{"narrow" if width == NARROW else scheme}', min(width, 900))


def test_the_keyboard_reaches_everything(stack: Stack, zone: str, page: Browser) -> None:
    show(page, stack)
    show_focus = 'return document.activeElement.outerHTML.slice(0, 200)'
    wanted = page.run('return [...document.querySelectorAll("a[href], button, input, [tabindex=\\"0\\"]")].length')
    first = None
    reached = set()
    for _ in range(wanted):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.run('return [...document.querySelectorAll("*")].indexOf(document.activeElement)'))
        first = first or page.run(show_focus)
    assert 'Skip to the contents' in str(first) and len(reached) == wanted

    show(page, stack)
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert page.run('return document.activeElement.getBoundingClientRect().left') >= 0
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.run('return document.activeElement.id') == 'main'


def test_it_can_be_read_without_scripts(stack: Stack, zone: str, page: Browser, servers: list[SecondaryServer]) -> None:
    page.scripts(False)
    show(page, stack)
    assert page.driver.find_elements(By.CSS_SELECTOR, 'input[type=checkbox]') == []
    assert label(servers[0]) in page.driver.find_element(By.ID, 'servers').text
    page.driver.find_element(By.LINK_TEXT, ZONE).click()
    wait_until(lambda: page.driver.title == ZONE, 'the page of the zone')


def test_no_request_leaves_and_nothing_is_complained_about(stack: Stack, zone: str, page: Browser) -> None:
    for path in ('/status', f'/status/zones/{zone}'):
        show(page, stack, path)
        asked = page.run('return performance.getEntries().filter((each) => each.name.includes(":"))'
                         '.map((each) => each.name)')
        assert asked and all(each.startswith(stack.url + '/') for each in asked), asked
        policy = requests.get(stack.url + path, timeout=60).headers['Content-Security-Policy']
        assert policy.startswith("default-src 'none'; ") and 'unsafe' not in policy and 'http' not in policy
    assert page.complaints() == []


def no_faults(page: Browser) -> bool:
    assert page.faults() == []
    return True


def picture(page: Browser, name: str, width: int = 900) -> None:
    if SCREENSHOTS:
        page.picture(pathlib.Path(SCREENSHOTS) / f'{name}.png', width)
