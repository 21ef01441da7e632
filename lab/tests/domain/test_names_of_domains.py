"""Which domain a name stands for, and whose code it counts as."""

import importlib
import sys
import threading
import time
from functools import partial
from importlib.metadata import EntryPoint

import pytest
from own_code import CHAIN, ENVIRONMENT, registering, told_by, write

from gvf.common import user_code as code
from gvf.common.gymnasium import gym
from gvf_lab import domain as domains
from gvf_lab.racing import RacingStudy
from gvf_lab.study import Study, VarianceStudy
from gvf_lab.study.settings import references, settings

STAR = "import gvf_lab\n\n\ndef make():\n    return gvf_lab.domain.get('star')\n"

pytestmark = pytest.mark.usefixtures("own_modules")


def study_in(domain: str) -> Study:
    return Study("s", domain, ("IR",), (0.5,), steps=40, evaluation_states=2, runs=1)


def test_the_module_of_a_gymnasium_id_counts():
    write("own_registers.py", registering("own_environment"))
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    study = study_in("own_registers:Own-v0")
    assert domains.references(study.domain) == ("own_registers:Own-v0", "own_environment:Env")
    assert (
        settings(study)["code"].keys() == references(study) == {*domains.references(study.domain)}
    )
    assert set(code.files(references(study))) == {"own_registers.py", "own_environment.py"}


def test_an_environment_that_a_user_registered_counts():
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    made = importlib.import_module("own_environment").Env
    for given in ("own_environment:Env", made, partial(made)):
        gym.registry.pop("Own-v0", None)
        gym.register("Own-v0", given)
        assert domains.references("Own-v0") == ("own_environment:Env",)
    assert len(settings(study_in("Own-v0"))["code"]["own_environment:Env"]) == 16
    found = settings(study_in("CartPole-v1"))["code"]
    assert [*found.values()] == [f"gymnasium {gym.__version__}"]


def test_an_id_that_is_registered_again_is_another_domain():
    write("own_environment.py", ENVIRONMENT.replace("REWARD", "1.0"))
    gym.register("Own-v0", "own_environment:Env")
    first = domains.get("Own-v0")
    assert domains.get("Own-v0") is first
    del gym.registry["Own-v0"]
    gym.register("Own-v0", "own_environment:Env", max_episode_steps=3)
    assert domains.get("Own-v0") is not first


def test_an_entry_point_counts(monkeypatch):
    points = [EntryPoint("my-world", "own_world:make [extra]", "gvf.domains")]
    monkeypatch.setattr(
        domains, "entry_points",
        lambda group, name=None: [p for p in points if name in (None, p.name)],
    )  # fmt: skip
    write("own_world.py", STAR)
    assert domains.references("my-world") == ("own_world:make",)
    assert len(settings(study_in("my-world"))["code"]["own_world:make"]) == 16


def test_our_domains_have_no_code_of_a_user():
    assert all(domains.references(name) == () for name in domains.names())
    assert domains.references("nothing like this") == ()
    assert "code" not in settings(Study("s", methods=("IR",), **CHAIN))
    assert "code" not in settings(RacingStudy("r", step_sizes=(0.1,)))


def test_the_generation_is_the_domains(monkeypatch):
    assert settings(Study("s", methods=("IR",), **CHAIN))["generation"] == 1
    assert settings(VarianceStudy("v"))["generation"] == 2  # those of 1 have no trace
    assert settings(RacingStudy("r", step_sizes=(0.1,)))["generation"] == 1
    rooms = Study("s", "continuous-four-rooms", ("IR",), (0.5,))
    assert settings(rooms)["generation"] == 1
    assert settings(rooms.under("authors"))["generation"] == 2
    monkeypatch.setattr(type(domains.get("markov-chain")), "generation", 7)
    assert settings(Study("s", methods=("IR",), **CHAIN))["generation"] == 7
    assert settings(VarianceStudy("v"))["generation"] == 8


def test_a_domain_is_made_once(monkeypatch):
    made = []

    def slow(protocol):
        made.append(protocol)
        time.sleep(0.05)
        return object.__new__(domains.GymnasiumDomain)

    monkeypatch.setitem(domains._DOMAINS, "slow", slow)
    found = []
    threads = [
        threading.Thread(target=lambda given=given: found.append(domains.get("slow", *given)))
        for given in [(), ("paper",)] * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["paper"]
    assert len({*map(id, found)}) == 1
    assert domains.get("slow", protocol="authors") is not found[0]
    assert domains.get("CartPole-v1", "authors") is domains.get("CartPole-v1")
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]
    assert domains.get("slow") is not found[0]


def test_a_domain_of_a_reloaded_module_is_the_new_one():
    file = write("own_world.py", STAR)
    assert domains.get("own_world:make").name == "star"
    file.write_text(file.read_text().replace("'star'", "'markov-chain'"))
    importlib.reload(sys.modules["own_world"])
    assert domains.get("own_world:make").name == "markov-chain"


def test_a_mistyped_domain_is_recognised_among_the_ids_of_gymnasium():
    told = told_by(domains.get, "CartPol-v1")
    assert told.startswith("unknown domain: 'CartPol-v1'; did you mean 'CartPole-v1'")
    assert len(told) < 200
