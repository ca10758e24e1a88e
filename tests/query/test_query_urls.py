"""URLs of HTTP servers are read strictly, so that what is checked is what is connected to."""

from __future__ import annotations

import pytest

from guardrail.query.urls import Origin, proxy_of, url_of


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://api.example.com", Origin("https", "api.example.com", 443), "/"),
        ("HTTPS://API.Example.com:443/v2/", Origin("https", "api.example.com", 443), "/v2/"),
        ("http://localhost:8080/a/b?c=d", Origin("http", "localhost", 8080), "/a/b?c=d"),
        ("http://host?c=d", Origin("http", "host", 80), "/?c=d"),
        ("http://[::1]:81/x", Origin("http", "::1", 81), "/x"),
        ("http://xn--bcher-kva.example", Origin("http", "xn--bcher-kva.example", 80), "/"),
    ],
)
def test_a_url_is_its_origin_and_what_is_asked_for_there(text: str, origin: Origin, target: str) -> None:
    url = url_of(text)
    assert (url.origin, url.target) == (origin, target)
    assert url_of(str(url)) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://host/", "http"),
        ("//host/", "http"),
        ("https:/host", "http"),
        ("https://", "plain URL"),
        ("https://user:secret@host/", "user or a password"),
        ("https://trusted.example@evil.example/", "user or a password"),
        ("https://trusted.example:80@evil.example/", "user or a password"),
        ("https://evil.example\\@trusted.example/", "user or a password"),
        ("https://evil.example\\.trusted.example/", "plain URL"),
        ("https://host\\path", "plain URL"),
        ("https://host/pa th", "plain URL"),
        ("https://host/\npath", "plain URL"),
        ("https://ho\tst/", "plain URL"),
        ("https://ho\0st/", "plain URL"),
        ("https://höst/", "ASCII"),
        ("https://host/ü", "ASCII"),
        ("https://ⓔxample.com/", "ASCII"),
        ("https://host#@trusted.example", "#"),
        ("https://host:0/", "port"),
        ("https://host:65536/", "port"),
        ("https://host:+80/", "plain URL"),
        ("https://host:", "plain URL"),
        ("https://-host/", "plain URL"),
        ("https://[::1/", "plain URL"),
        ("https://[::1]x/", "plain URL"),
        ("https://[fe80::1%25eth0]/", "plain URL"),
        ("https://a,b/", "plain URL"),
        ("https://%61.example/", "plain URL"),
    ],
)
def test_what_readers_of_urls_may_differ_about_is_refused_and_not_quoted(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        url_of(text)
    assert not any(part in str(refusal.value) for part in ("secret", "evil", "trusted"))


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("?page=2", "https://host/api/items?page=2"),
        ("other", "https://host/api/other"),
        ("/x?y=z#part", "https://host/x?y=z"),
        ("../up", "https://host/up"),
        ("../../../../up", "https://host/up"),
        ("https://host:443/abs", "https://host/abs"),
        ("//evil.example/x", "https://evil.example/x"),
        ("https://evil.example", "https://evil.example/"),
        ("/a b/ü", "https://host/a%20b/%C3%BC"),
        ("\\\\evil.example/x", "https://host/api/%5C%5Cevil.example/x"),
        ("/\\evil.example/x", "https://host/%5Cevil.example/x"),
        ("ht\ntps://evil.example/", "https://host/api/ht%0Atps:/evil.example/"),
    ],
)
def test_a_reference_leads_where_it_says_and_nowhere_by_a_trick(reference: str, found: str) -> None:
    assert str(url_of("https://host/api/items").at(reference)) == found


@pytest.mark.parametrize(
    "reference", ["https://user@host/", "javascript:alert(1)", "https://host:99999/", "http://[::1"]
)
def test_a_reference_that_is_no_plain_url_is_refused(reference: str) -> None:
    with pytest.raises(ValueError, match=r"^(holds|has|is)"):
        url_of("https://host/api").at(reference)


def test_a_proxy_may_have_a_user_and_a_password_which_are_not_in_its_repr() -> None:
    proxy = proxy_of("http://me:p%40ss@proxy:3128")
    assert (proxy.origin, proxy.credentials) == (Origin("http", "proxy", 3128), ("me", "p@ss"))
    assert "p@ss" not in repr(proxy)
    assert proxy_of("http://proxy:3128").credentials is None
    with pytest.raises(ValueError, match="path"):
        proxy_of("http://proxy:3128/path")
