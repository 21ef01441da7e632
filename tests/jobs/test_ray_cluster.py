"""A process joins the cluster that it is told to join, and starts one of its own otherwise."""

import pytest

from gvf.jobs import ray_cluster


class Ray:
    """A module ray that notes how it was started."""

    def __init__(self, running=False):
        self.running, self.options = running, {}

    def is_initialized(self):
        return self.running

    def init(self, **options):
        self.options = options


@pytest.mark.parametrize(
    ("address", "variable", "joined"),
    [
        (None, None, None),
        ("10.0.0.1:6379", None, "10.0.0.1:6379"),
        (None, "10.0.0.2:6379", "10.0.0.2:6379"),
        ("10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.1:6379"),
    ],
)
def test_a_cluster_is_joined_only_where_an_address_says_so(monkeypatch, address, variable, joined):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable is not None:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    ray = Ray()
    assert ray_cluster.connect(ray, 3, address)
    # Without an address Ray joins any cluster of this machine, also one that a killed program left.
    assert ray.options["address"] == (joined or "local")
    assert ray.options["num_cpus"] == (None if joined else 3)
    assert ray.options["include_dashboard"] is (None if joined else False)


def test_a_process_that_is_connected_stays_where_it_is():
    ray = Ray(running=True)
    assert not ray_cluster.connect(ray, 3, None)
    assert not ray.options
