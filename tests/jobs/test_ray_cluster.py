"""A process joins the cluster that it is told to join, and starts one of its own otherwise."""

import pickle
from types import SimpleNamespace

import pytest

from gvf.jobs import Job, RayCluster, ray_cluster


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


class HereAndNow(Ray):
    """A cluster that does every batch in this process as soon as it gets it."""

    def __init__(self):
        super().__init__(running=True)
        self.cloudpickle, self.fetched, self.cancelled = pickle, [], []

    def put(self, value):
        return [value]

    def get(self, reference):
        self.fetched.append(reference)
        (value,) = reference
        if isinstance(value, Exception):
            raise value
        return value

    def remote(self, **options):
        def of(function):
            def do(shared, batch):
                try:
                    return [function(shared[0], batch)]
                except Exception as error:
                    return [error]

            return SimpleNamespace(remote=do)

        return of

    def wait(self, pending, num_returns=1, timeout=None):
        return pending[:num_returns], pending[num_returns:]

    def cluster_resources(self):
        return {"CPU": 2}

    def cancel(self, batch, force):
        self.cancelled.append(batch)


@pytest.fixture
def here_and_now(monkeypatch):
    ray = HereAndNow()
    monkeypatch.setattr(ray_cluster, "import_ray", lambda: ray)
    monkeypatch.setattr(ray_cluster, "_latest", ("", None))
    return ray


def doubled(job, stop):
    if job.work == 5:
        raise ValueError("five")
    return 2 * job.work


def jobs_of(count):
    return [Job(f"double {number}", work=number) for number in range(count)]


def test_batches_grow_and_bring_all_results(here_and_now):
    results = list(RayCluster().results(doubled, jobs_of(5)))
    assert [result.value for result in results] == [0, 2, 4, 6, 8]
    # The function is fetched once, and one batch has more than one job.
    assert len(here_and_now.fetched) <= 1 + 5


def test_a_failing_batch_does_not_take_finished_ones_with_it(here_and_now):
    values = []
    with pytest.raises(ValueError, match="five") as caught:
        values.extend(
            result.value for result in RayCluster().results(doubled, [*jobs_of(6)[5:], *jobs_of(4)])
        )
    assert values == [0, 2, 4]  # those of the batches that were sent
    assert caught.value.__notes__ == ["in job double 5"]


def test_an_interrupt_takes_what_is_finished_and_cancels_the_rest(here_and_now):
    values = []
    place = RayCluster(workers=1)
    for result in RayCluster().results(doubled, jobs_of(5), lambda: bool(values)):
        values.append(result.value)
    assert values == [0, 2, 4, 6]  # two batches in work, and two in reserve
    values = []
    for result in place.results(doubled, jobs_of(5), lambda: bool(values)):
        values.append(result.value)
    assert values == [0]


def test_a_failure_of_a_worker_that_heard_the_interrupt_is_none(here_and_now):
    answers = iter([False, True])
    assert list(RayCluster(workers=1).results(doubled, jobs_of(6)[5:], lambda: next(answers))) == []


def test_code_that_was_edited_is_not_taken_from_an_earlier_call():
    before = ray_cluster.digest_of({"mine.py": b"SHARE = 1"}, b"function")
    assert before == ray_cluster.digest_of({"mine.py": b"SHARE = 1"}, b"function")
    assert before != ray_cluster.digest_of({"mine.py": b"SHARE = 2"}, b"function")
    assert before != ray_cluster.digest_of({"mine.py": b"SHARE = 1"}, b"other")
