"""Reads metrics with the parsers of Prometheus' own Python client, in both text formats.

Usage: metrics.py URL...
"""

import sys
import urllib.request

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as plain


def fetch(url, accept):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def is_stable(name):
    """Whether both scrapes of a family must agree: a run goes on between them."""
    return name in ("throng_build_info", "throng_run_info", "throng_server_info")


def names(families):
    return {sample.name for family in families for sample in family.samples}


def scrape(url):
    """Returns the families in both formats, between two intervals of a run that goes on."""
    for _ in range(100):
        # This parser is strict: order, suffixes, units, buckets, duplicates, the end.
        kind, text = fetch(url, "application/openmetrics-text;version=1.0.0")
        assert kind.startswith("application/openmetrics-text"), kind
        families = list(openmetrics.text_string_to_metric_families(text))
        kind, text = fetch(url, "text/plain")
        assert kind.startswith("text/plain"), kind
        older = list(plain.text_string_to_metric_families(text))
        _, text = fetch(url, "application/openmetrics-text;version=1.0.0")
        if names(families) == names(openmetrics.text_string_to_metric_families(text)):
            return families, older
    raise AssertionError("each scrape has other metrics")


for url in sys.argv[1:]:
    families, older = scrape(url)
    for family in families:
        assert family.type != "unknown" and family.documentation, family
        assert not family.unit or family.name.endswith("_" + family.unit), family
    samples = [names(of) for of in (families, older)]
    assert samples[0] == samples[1], samples[0] ^ samples[1]
    stable = [
        sorted((s.name, sorted(s.labels.items()), s.value) for f in of for s in f.samples if is_stable(s.name))
        for of in (families, older)
    ]
    assert stable[0] == stable[1] and stable[0], stable
    print(f"{url}: {len(families)} families, {len(samples[0])} names of samples")
