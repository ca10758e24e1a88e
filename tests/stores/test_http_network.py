"""Where an HTTP store connects to: the declared server at an allowed address, whatever names, redirects and pages say."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from guardrail.errors import StoreError
from guardrail.pictures import Rows
from guardrail.stores.http.addresses import refusal
from support.apis import Api, Asking, Reply, fetch, opened, raw_server, why

QUESTION = fetch("/tickets/7", "/state")
OPEN = [Rows(("state",), (("open",),))]
TICKET = Reply({"state": "open"})

PRIVATE = (
    *("127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"),
    *("::1", "fc00::1", "fd12:3456::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a00:1"),
    "2002:a00:1::1",
)
NEVER = (
    *("0.0.0.0", "169.254.169.254", "169.254.1.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.0.192"),
    *("100.100.100.200", "168.63.129.16", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "fd00:ec2::254", "fec0::1"),
    *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "192.0.2.1", "198.18.0.1", "2001:db8::1"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused_unless_it_is_declared(address: str) -> None:
    assert "a private address; say `private: true`" in refusal(address, private=False)
    assert refusal(address, private=True) == ""


@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_refused_whatever_is_declared(address: str) -> None:
    assert refusal(address, private=False)
    assert refusal(address, private=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert refusal(address, private=False) == ""


HERE = ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:127.0.0.1]")


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_not_asked_by_any_of_its_names(api: Api, ask: Asking, host: str) -> None:
    store = opened(f"http://{host}:{api.port}", private=False)
    assert "a private address; say `private: true`" in why(ask(store, [QUESTION]))
    assert api.asked == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names lead to these addresses, one look-up after the other; the names that were looked up."""
    asked: list[str] = []
    left = iter(answers)
    really = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        if host[0].isdigit() or ":" in host:  # an address already
            return really(host, port, *args, **options)
        asked.append(host)
        families = [(socket.AF_INET6 if ":" in address else socket.AF_INET, address) for address in next(left)]
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for family, address in families]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1", "8.8.8.8"], ["::ffff:7f00:1"]])
def test_a_name_that_leads_to_a_private_address_is_refused(
    api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    resolving(monkeypatch, addresses)
    store = opened(f"http://crm.example.com:{api.port}", private=False)
    assert "its host leads to" in why(ask(store, [QUESTION]))
    assert api.asked == []


def test_the_metadata_of_a_cloud_is_refused_in_a_private_network_too(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ["169.254.169.254"])
    assert "an address that no API is at" in why(ask(opened("http://crm.example.com"), [QUESTION]))


def test_a_name_is_looked_up_once_in_a_look_and_what_was_checked_is_connected_to(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first server closes every connection, so that each request needs a new one; then the name leads elsewhere.
    good, evil = Api(host="127.0.0.1"), Api(host="127.0.0.2")
    good.replies["/tickets/7"] = Reply({"state": "open"}, headers={"Connection": "close"})
    good.replies["/tickets/8"] = Reply({"state": "open"}, headers={"Connection": "close"})
    asked = resolving(monkeypatch, ["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"])
    answers = ask(opened(f"http://crm.example.com:{good.port}"), [QUESTION, fetch("/tickets/8", "/state")])
    assert answers == OPEN * 2
    assert asked == ["crm.example.com"]
    assert [seen.headers["host"] for seen in good.asked] == [f"crm.example.com:{good.port}"] * 2
    assert evil.asked == []
    good.close()
    evil.close()


def test_the_next_address_is_tried_where_the_first_does_not_answer(
    api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.replies["/tickets/7"] = TICKET
    resolving(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    assert ask(opened(f"http://crm.example.com:{api.port}"), [QUESTION]) == OPEN


def test_a_name_that_is_not_known_says_nothing(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    reason = why(ask(opened("http://crm.example.com"), [QUESTION]))
    assert "its host name cannot be looked up (Name or service not known)" in reason


def test_a_look_up_that_hangs_ends_with_the_look(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def hanging(*_: Any, **__: Any) -> Any:
        released.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure")

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    reason = why(ask(opened("http://crm.example.com", timeout="300ms"), [QUESTION]))
    released.set()
    assert "it took longer than 0.3 s" in reason


def test_a_server_of_version_6_is_asked(ask: Asking) -> None:
    api = Api(host="::1")
    api.replies["/tickets/7"] = TICKET
    assert ask(opened(api.url), [QUESTION]) == OPEN
    assert api.asked[0].headers["host"] == f"[::1]:{api.port}"
    api.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_server_is_followed(api: Api, ask: Asking, status: int) -> None:
    api.replies["/tickets/7"] = Reply(status=status, headers={"Location": "../moved/7?x=y"})
    api.replies["/moved/7"] = TICKET
    assert ask(opened(api.url), [QUESTION]) == OPEN
    assert api.targets == ["/tickets/7", "/moved/7?x=y"]


@pytest.fixture
def elsewhere() -> Iterator[Api]:
    """Another server."""
    made = Api(host="127.0.0.2")
    made.replies["/tickets/7"] = TICKET
    yield made
    made.close()


@pytest.mark.parametrize("location", ["{elsewhere}/tickets/7", "//127.0.0.2:{port}/tickets/7", "https://127.0.0.1/"])
def test_a_redirect_to_elsewhere_is_refused_and_told_without_what_it_carries(
    api: Api, elsewhere: Api, ask: Asking, location: str
) -> None:
    target = location.format(elsewhere=elsewhere.url, port=elsewhere.port) + "?token=s3cret"
    api.replies["/tickets/7"] = Reply(status=302, headers={"Location": target})
    reason = why(ask(opened(api.url), [QUESTION]))
    assert "it redirects to http" in reason
    assert f"and only {api.url} is asked" in reason
    assert "s3cret" not in reason
    assert elsewhere.asked == []


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "does not say where to"),
        ({"Location": "ftp://127.0.0.1/"}, "no URL that begins with http"),
        ({"Location": "http://user:s3cret@127.0.0.1/"}, "a user or a password"),
        ({"Location": "/tickets/7"}, "redirects more than 5 times"),
    ],
)
def test_a_redirect_that_leads_nowhere_says_nothing(
    api: Api, ask: Asking, headers: dict[str, str], reason: str
) -> None:
    api.replies["/tickets/7"] = Reply(status=302, headers=headers)
    said = why(ask(opened(api.url), [QUESTION]))
    assert reason in said
    assert "s3cret" not in said
    assert len(api.asked) <= 6


def test_nothing_is_taken_from_the_environment(
    api: Api, elsewhere: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    api.replies["/tickets/7"] = TICKET
    assert ask(opened(api.url), [QUESTION]) == OPEN
    assert elsewhere.asked == []
    assert "authorization" not in api.asked[0].headers


def test_no_cookie_is_kept(api: Api, ask: Asking) -> None:
    api.replies["/tickets/7"] = Reply({"state": "open"}, headers={"Set-Cookie": "session=1; Path=/"})
    api.replies["/tickets/8"] = TICKET
    ask(opened(api.url), [QUESTION, fetch("/tickets/8", "/state")])
    assert ["cookie" in asked.headers for asked in api.asked] == [False, False]


def test_a_declared_proxy_is_gone_through_and_looks_the_name_up_itself(
    api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolving(monkeypatch)
    api.replies["http://crm.example.com/api/tickets/7"] = TICKET
    proxy = api.url.replace("http://", "http://me:s3cret@")
    store = opened("http://crm.example.com/api", proxy=proxy, private=False)
    assert ask(store, [QUESTION]) == OPEN
    assert api.asked[0].headers["proxy-authorization"] == "Basic bWU6czNjcmV0"
    assert asked == []


def test_a_proxy_that_refuses_says_nothing(ask: Asking) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 407 Say s3cret\r\nContent-Length: 0\r\n\r\n")

    with raw_server(refuse) as proxy:
        reason = why(ask(opened("https://crm.example.com", proxy=proxy), [QUESTION]))
    assert "its proxy does not let the request through" in reason
    assert "s3cret" not in reason


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority that nobody trusts but who is told to."""
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> str:
    """The path of its certificate."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[Api]:
    """A server with a certificate for its name `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate: Any = authority.issue_cert("localhost")
    certificate.configure_cert(context)
    made = Api(tls=context)
    made.replies["/tickets/7"] = TICKET
    yield made
    made.close()


def test_a_certificate_is_checked_against_the_name_that_was_declared(secure: Api, ca: str, ask: Asking) -> None:
    assert ask(opened(f"https://localhost:{secure.port}", ca=ca), [QUESTION]) == OPEN
    assert secure.asked[0].headers["host"] == f"localhost:{secure.port}"


def test_a_certificate_for_another_name_is_refused(secure: Api, ca: str, ask: Asking) -> None:
    reason = why(ask(opened(f"https://127.0.0.1:{secure.port}", ca=ca), [QUESTION]))
    assert "its certificate is not trusted: IP address mismatch" in reason
    assert secure.asked == []


def test_a_certificate_of_an_unknown_authority_is_refused(secure: Api, ask: Asking) -> None:
    reason = why(ask(opened(f"https://localhost:{secure.port}"), [QUESTION]))
    assert "its certificate is not trusted: unable to get local issuer certificate" in reason
    assert secure.asked == []


def test_a_server_that_speaks_no_tls_is_told_from_one_that_is_away(api: Api, ask: Asking) -> None:
    reason = why(ask(opened(f"https://127.0.0.1:{api.port}", timeout="2s"), [QUESTION]))
    assert "no secure connection can be made to it" in reason


def test_a_secure_server_is_reached_through_a_proxy_and_its_certificate_checked(
    secure: Api, ca: str, ask: Asking
) -> None:
    def tunnel(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", secure.port)) as onward:
            back = threading.Thread(target=pump, args=(onward, connection), daemon=True)
            back.start()
            pump(connection, onward)
            onward.shutdown(socket.SHUT_RDWR)
            back.join()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # whoever breaks off has seen enough
            while piece := source.recv(2**16):
                target.sendall(piece)

    with raw_server(tunnel) as proxy:
        assert ask(opened("https://localhost", ca=ca, proxy=proxy), [QUESTION]) == OPEN
        wrong = why(ask(opened("https://crm.example.com", ca=ca, proxy=proxy), [QUESTION]))
    assert "its certificate is not trusted: Hostname mismatch" in wrong


def test_certificates_that_cannot_be_read_are_told_when_the_store_is_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"certificates in .*nothing\.pem cannot be read"):
        opened("https://localhost", ca=str(tmp_path / "nothing.pem"))
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(StoreError, match="cannot be read"):
        opened("https://localhost", ca=str(tmp_path / "no.pem"))


SECRET = "s3cret-t0ken"


@pytest.mark.parametrize("status", [200, 401, 500, 503])
def test_no_secret_shows_in_an_answer_or_a_repr(api: Api, ask: Asking, status: int) -> None:
    api.replies["/tickets/7"] = Reply({}, status)
    store = opened(
        api.url,
        timeout="300ms",
        headers={"Authorization": f"Bearer {SECRET}"},
        resources={"tickets": {"get": "/tickets/7", "query": {"api_key": SECRET}, "key": "id"}},
    )
    answers = ask(store, [fetch("/tickets/7", "/state", query={"api_key": SECRET}), fetch("/:id", id=SECRET)])
    told = repr(answers) + repr([getattr(answer, "exchange", None) for answer in answers])
    assert SECRET not in told + repr(store) + repr(vars(store))
    assert SECRET in api.asked[0].headers["authorization"]
