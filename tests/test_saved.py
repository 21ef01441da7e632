"""Checkpoints of learners: loaded without running their code, refused if foreign or damaged."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream
from own_corrections import FollowOn, Prioritised

import gvf
from gvf.common import checkpoint

DATA = chain_stream(CHAIN_BEHAVIOUR, 300, seed=2)


def make(update=None, correction=None, question=CHAIN, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 100, "seed": 0, **options}
    return gvf.Learner(
        question,
        gvf.features.OneHot(5),
        update or gvf.updates.TD(0.5),
        correction or gvf.corrections.IR(),
        **options,
    )


def reached_the_end(t):
    return (t.next_state == 4) * 1.0


def ended_at_the_end(t):
    return (t.next_state == 4) * 1.0


UPDATES = [
    gvf.updates.TD([0.3, 0.5]),
    gvf.updates.TD(0.01, gvf.updates.RMSProp(0.8)),
    gvf.updates.TD(0.01, gvf.updates.Adam()),
    gvf.updates.IncrementalTD(0.1),
    gvf.updates.WISTD(5.0, 0.01),
    gvf.updates.Sarsa(0.5),
    gvf.updates.ExpectedSarsa(0.5),
    gvf.updates.TDRC(0.1),
]


@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_a_learner_made_from_a_file_goes_on_to_the_last_bit(update, tmp_path):
    straight, first = (
        make(update, update_every=3, warm_up=5),
        make(update, update_every=3, warm_up=5),
    )
    straight.observe(DATA)
    first.observe(DATA[:170])
    first.save(tmp_path / "learner")
    second = gvf.load(tmp_path / "learner")
    assert repr(second) == repr(first)
    second.observe(DATA[170:])
    np.testing.assert_array_equal(second.weights, straight.weights)
    assert second.report() == straight.report()


@pytest.mark.parametrize("correction", [FollowOn(), Prioritised(0.7)], ids=lambda c: c.name)
def test_a_correction_of_ones_own_needs_trust(correction, tmp_path):
    first = make(correction=correction)
    first.observe(DATA[:170])
    first.save(tmp_path / "learner")
    with pytest.raises(
        ValueError, match=r'names own_corrections:.* trust it: .*trust=\["own_corrections"\]'
    ):
        gvf.load(tmp_path / "learner")
    second = gvf.load(tmp_path / "learner", trust=["own_corrections"])
    for learner in (first, second):
        learner.observe(DATA[170:])
    np.testing.assert_array_equal(second.weights, first.weights)


def test_a_function_in_a_question_needs_trust_and_a_name(tmp_path):
    question = gvf.GVF(CHAIN.policy, reached_the_end, 0.9)
    make(question=question).save(tmp_path / "named")
    with pytest.raises(ValueError, match=r"question.cumulant names test_saved:reached_the_end"):
        gvf.load(tmp_path / "named")
    assert gvf.load(tmp_path / "named", trust=["test_saved"]).question == question
    make(question=gvf.GVF(CHAIN.policy, lambda t: t.reward, 0.9)).save(tmp_path / "lambda")
    with pytest.raises(ValueError, match=r"question.cumulant .*lambda.*define it at the top of"):
        gvf.load(tmp_path / "lambda", trust=["test_saved"])


def test_loading_a_file_imports_nothing_that_is_not_trusted(tmp_path):
    """A new process loads a file; the untrusted module would leave a mark if imported."""
    (tmp_path / "evil.py").write_text(
        "from pathlib import Path\n"
        f"Path({str(tmp_path / 'mark')!r}).touch()\n"
        "def cumulant(t):\n    return t.reward\n"
    )
    program = (
        "import gvf, evil\n"
        "q = gvf.GVF(gvf.policies.Uniform(2), evil.cumulant, 0.9)\n"
        "l = gvf.Learner(q, gvf.features.OneHot(3), gvf.updates.TD(0.1), "
        "behaviour=gvf.policies.Uniform(2))\n"
        "l.save('learner')\n"
    )
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run([sys.executable, "-c", program])
    (tmp_path / "mark").unlink()
    refused = (
        "import gvf, sys\n"
        "try:\n    gvf.load('learner')\n"
        "except ValueError as error:\n    print(error)\n"
        "assert 'evil' not in sys.modules\n"
    )
    said = run([sys.executable, "-c", refused]).stdout
    assert 'if you trust it: gvf.load(path, trust=["evil"])' in said
    assert said.count("\n") == 1
    assert not (tmp_path / "mark").exists()
    run([sys.executable, "-c", "import gvf; gvf.load('learner', trust=['evil'])"])
    assert (tmp_path / "mark").exists()


def test_functions_without_a_name_are_never_taken_for_the_same(tmp_path):
    def scaled(factor):
        return make(question=gvf.GVF(CHAIN.policy, lambda t: factor * t.reward, 0.9))

    scaled(2.0).save(tmp_path / "learner")
    with pytest.raises(ValueError, match=r"another learner:\n  question.cumulant: <lambda> cannot"):
        scaled(3.0).load(tmp_path / "learner")
    with pytest.raises(ValueError, match=r"same: load\(path, same_functions=True\)$"):
        scaled(2.0).load(tmp_path / "learner")
    scaled(2.0).load(tmp_path / "learner", same_functions=True)


def test_a_function_of_another_name_needs_a_word(tmp_path):
    make(question=gvf.GVF(CHAIN.policy, reached_the_end, 0.9)).save(tmp_path / "learner")
    renamed = make(question=gvf.GVF(CHAIN.policy, ended_at_the_end, 0.9))
    with pytest.raises(ValueError, match="there reached_the_end, here ended_at_the_end\nWhere you"):
        renamed.load(tmp_path / "learner")
    renamed.load(tmp_path / "learner", same_functions=True)


def test_damaged_truncated_and_foreign_files_are_refused_in_one_line(tmp_path):
    learner, path = make(), tmp_path / "learner"
    learner.observe(DATA)
    learner.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [0, 20, 70, 100, *rng.integers(len(whole), size=60).tolist(), len(whole) - 1]:
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        for load in (gvf.load, make().load):
            with pytest.raises(ValueError, match="learner") as caught:
                load(path)
            assert "\n" not in str(caught.value)
    for content in (whole[: len(whole) // 2], b"", b"hello\n" * 100, whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"not a gvf checkpoint|damaged or incomplete"):
            gvf.load(path)
    gvf.Window(3).save(tmp_path / "window")
    with pytest.raises(ValueError, match="holds a window, not a learner"):
        gvf.load(tmp_path / "window")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        learner.save(tmp_path / "missing" / "learner")


@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_an_exported_predictor_predicts_the_same_from_a_small_file(update, tmp_path):
    learner = make(update, window=5000)
    learner.observe(DATA)
    learner.export(tmp_path / "predictor")
    learner.save(tmp_path / "learner")
    states = np.arange(5)
    predictor = gvf.load(tmp_path / "predictor")
    np.testing.assert_array_equal(predictor.predict(states), learner.predict(states))
    assert repr(predictor) == f"Predictor({learner.question})"
    sizes = [Path(tmp_path, name).stat().st_size for name in ("predictor", "learner")]
    assert sizes[0] < 5000 < sizes[1]
    with pytest.raises(ValueError, match="holds a predictor of a learner, not a learner"):
        make().load(tmp_path / "predictor")
    with pytest.raises(ValueError, match="need no network"):
        gvf.load(tmp_path / "predictor", network=object())


def test_a_network_is_exported_as_its_weights(tmp_path):
    torch = pytest.importorskip("torch")
    from gvf.neural import NeuralLearner, mlp

    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
    sgd = partial(torch.optim.SGD, lr=0.1)
    learner = NeuralLearner(question, mlp(2), sgd, behaviour=gvf.policies.Uniform(2), seed=0)
    for _ in range(20):
        learner.observe([0.1, 0.2], 1, 1.0, [0.3, 0.4], False)
    learner.export(tmp_path / "predictor")
    learner.save(tmp_path / "learner")
    states = [[0.1, 0.2], [0.5, 0.5]]
    predictor = gvf.load(tmp_path / "predictor", network=mlp(2))
    np.testing.assert_array_equal(predictor.predict(states), learner.predict(states))
    with pytest.raises(ValueError, match="whose code is not in the file"):
        gvf.load(tmp_path / "predictor")
    with pytest.raises(ValueError, match="another form"):
        gvf.load(tmp_path / "predictor", network=mlp(3))
    with pytest.raises(ValueError, match="holds a NeuralLearner with a network"):
        gvf.load(tmp_path / "learner")


def changed(path, arrays=None, description=None):
    """Write a file again with some parts changed, and a digest that fits."""
    kind, parts, before = checkpoint.read_any(path)
    checkpoint.write(path, kind, before | (arrays or {}), parts | (description or {}))


@pytest.mark.parametrize(
    "arrays",
    [
        {"window/column/x": np.full((100, 1), 5, np.int32)},
        {"window/column/x": np.full((100, 1), -1, np.int32)},
        {"window/column/x": np.zeros((100, 1), np.int64)},
        {"window/column/x_next": np.zeros((100, 2), np.int32)},
        {"window/column/cumulant": np.zeros(100, np.int64)},
        {"window/ring": np.array([100, 10**9])},
        {"values/weights": np.zeros((1, 1))},
        {"values/index": np.zeros(1)},
        {"buffer/rings": np.zeros((1, 3))},
        {"buffer/trace/memory": np.zeros((3, 9))},
        {"own/rng": np.array(["{}", "{"])},
        {"own/counts": np.zeros(9)},
    ],
    ids=lambda arrays: next(iter(arrays)),
)
def test_arrays_that_do_not_fit_are_refused(arrays, tmp_path):
    learner = make()
    learner.observe(DATA)
    learner.save(tmp_path / "learner")
    changed(tmp_path / "learner", arrays)
    for load in (gvf.load, make().load):
        with pytest.raises(ValueError, match="does not hold what it should") as caught:
            load(tmp_path / "learner")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "description",
    [
        {"question": None},
        {"question": {"dict": [[[], 1]]}},
        {"surprise": 1},
        {"window": 10**15},
        {"update": {"scalar": "nonsense", "value": 1}},
        {"rng": "os.system"},
    ],
    ids=repr,
)
def test_descriptions_that_do_not_fit_are_refused(description, tmp_path):
    make().save(tmp_path / "learner")
    changed(tmp_path / "learner", description=description)
    with pytest.raises(ValueError, match="does not hold what it should"):
        gvf.load(tmp_path / "learner")


def test_weights_that_do_not_fit_the_features_are_refused(tmp_path):
    make().export(tmp_path / "predictor")
    changed(tmp_path / "predictor", {"weights": np.zeros((4, 1))})
    with pytest.raises(ValueError, match=r"weights have shape \(4, 1\)"):
        gvf.load(tmp_path / "predictor")


def test_functions_of_gvf_are_not_run_because_a_file_names_them(tmp_path):
    learner = gvf.Learner(
        CHAIN, gvf.features.Dense(5), gvf.updates.TD(0.1), behaviour=CHAIN_BEHAVIOUR
    )
    learner.export(tmp_path / "predictor")
    for name in ("gvf.cli:main", "gvf.common.checkpoint:write"):
        function = {"function": name}
        features = {"class": "gvf.features:Dense", "arguments": {"size": 5, "function": function}}
        changed(tmp_path / "predictor", description={"features": features})
        with pytest.raises(ValueError, match=f"features.function names {name}; if you trust it"):
            gvf.load(tmp_path / "predictor")


def test_trust_may_be_any_iterable_of_names(tmp_path):
    question = gvf.GVF(CHAIN.policy, reached_the_end, 0.9)
    make(question=question, correction=FollowOn()).save(tmp_path / "learner")
    names = ["test_saved", "own_corrections"]
    assert gvf.load(tmp_path / "learner", trust=iter(names)).question == question
    with pytest.raises(TypeError, match="trust must name modules"):
        gvf.load(tmp_path / "learner", trust=[5])  # pyright: ignore[reportArgumentType]


def test_a_function_of_the_running_program_is_compared_by_its_name(tmp_path):
    program = """
import functools, gvf
question = lambda cumulant: gvf.GVF(gvf.policies.Uniform(2), cumulant, 0.9)
made = lambda cumulant: gvf.Learner(question(cumulant), gvf.features.OneHot(3), gvf.updates.TD(0.1))
def reward(t):
    return t.reward
def other(t):
    return t.reward
def wrapped(function):
    @functools.wraps(function)
    def inside(t):
        return 2 * function(t)
    return inside
made(reward).save("learner")
made(reward).load("learner")
for cumulant in (other, wrapped(reward)):
    try:
        made(cumulant).load("learner")
    except ValueError as error:
        print(str(error).splitlines()[1])
try:
    gvf.load("learner", trust=["__main__"])
except ValueError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == [
        "  question.cumulant: there reward, here other",
        "  question.cumulant: reward cannot be compared, since it has no name in a module",
        "learner does not hold what it should: question.cumulant is reward, which cannot be found "
        "by a name: define it at the top of a module of its own, or make the learner as before and "
        "call learner.load(path, same_functions=True)",
    ]


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64DXSM, np.random.Philox])
def test_any_generator_of_numpy_is_saved(kind, tmp_path):
    first = make(seed=np.random.Generator(kind(3)))
    first.observe(DATA[:100])
    first.save(tmp_path / "learner")
    second = gvf.load(tmp_path / "learner")
    third = make(seed=np.random.Generator(kind(9))).load(tmp_path / "learner")
    for learner in (first, second, third):
        learner.observe(DATA[100:])
    np.testing.assert_array_equal(second.weights, first.weights)
    np.testing.assert_array_equal(third.weights, first.weights)
    with pytest.raises(ValueError, match=f"rng: there '{kind.__name__}', here 'PCG64'"):
        make().load(tmp_path / "learner")


@pytest.mark.parametrize("method", ["save", "export"])
def test_a_file_of_another_version_is_refused_in_one_line(method, tmp_path):
    learner, path = make(), tmp_path / "file"
    getattr(learner, method)(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(gvf.__version__.encode(), b"0.0.7", 1))
    for read in (gvf.load, make().load):
        with pytest.raises(ValueError, match=f"saved by gvf 0.0.7; this is gvf {gvf.__version__}"):
            read(path)


@pytest.mark.parametrize("act_steps", [1, 64])
def test_a_default_step_size_goes_on_to_the_last_bit(act_steps, tmp_path):
    features = gvf.features.Dense(
        5, lambda s: np.array([1.0, 3.0, 2.0, 9.0, 0.0])[s, None] * np.eye(5)[s]
    )
    learner, again = (
        gvf.Learner(
            CHAIN,
            features,
            gvf.updates.TD(),
            gvf.corrections.IS(),
            behaviour=CHAIN_BEHAVIOUR,
            seed=0,
        )
        for _ in range(2)
    )
    learner.learn([DATA[:4]])
    learner.save(tmp_path / "learner")
    again.load(tmp_path / "learner", same_functions=True)
    learner.learn([DATA])
    again.learn([DATA], act_steps=act_steps)
    assert np.array_equal(again.weights, learner.weights)
    assert again.update == learner.update == gvf.updates.TD(0.1 / 81)


class Tilted(gvf.policies.Bank):
    """A bank whose policies favour one action each."""

    def __init__(self, names, most):
        self.names, self.most = names, most

    def log_probabilities(self, states, actions):
        likely = np.where(np.asarray(actions)[:, None] == np.arange(2), self.most, 1 - self.most)
        return np.log(likely)


class Unequal(gvf.policies.DiscretePolicy):
    """A policy that cannot be hashed, so that two of them are never the same."""

    actions = 2
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other):
        return True

    def probabilities(self, states):
        return np.tile([0.3, 0.7], (len(states), 1))


def both_signals(t):
    return np.column_stack([t.reward, t.next_state == 4])


def horde(questions=None, **options):
    policies = {"left": gvf.policies.Always(0, 2), "x": Unequal(), "y": Unequal()}
    policies |= Tilted(("a", "b"), 0.8)
    signals = {"reward": "reward", "end": reached_the_end}
    signals |= gvf.SignalBank(both_signals, 2)
    asked = gvf.question_grid(policies, signals, [0.5, 0.9]) if questions is None else questions
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 50, "seed": 0, **options}
    return gvf.Horde(asked, gvf.features.OneHot(5), gvf.updates.TD(0.2), **options)


@pytest.mark.parametrize(
    "correction", [gvf.corrections.IR(), gvf.corrections.EmphaticIR(0.5)], ids=lambda c: c.name
)
def test_a_horde_made_from_a_file_goes_on_to_the_last_bit(correction, tmp_path):
    options = {
        "correction": correction,
        "update_every": 2,
        "warm_up": 3,
        "batch_size": 4,
        "steps_per_call": 5,
    }
    first = horde(**options)
    first.observe(DATA[:120])
    removed = [question for question in first.questions if question.name == "x, end, 0.5"]
    first.remove("x, end, 0.5")
    first.add(removed)
    first.observe(DATA[120:170])
    first.save(tmp_path / "horde")
    with pytest.raises(
        ValueError, match=r"policy\[1\] names test_saved:Unequal.*trust it: gvf.load"
    ):
        gvf.load(tmp_path / "horde")
    second = gvf.load(tmp_path / "horde", trust=["test_saved"])
    assert isinstance(second, gvf.Horde)
    assert repr(second) == repr(first)
    assert second.names == first.names
    before, layout = first._layout, second._layout
    assert layout.groups == before.groups
    banks = {id(getattr(question.policy, "bank", None)) for question in second.questions}
    assert len(banks) == 2  # one, and None
    for one in (first, second):
        one.observe(DATA[170:])
    for name, array in first._arrays().items():
        np.testing.assert_array_equal(second._arrays()[name], array)
    assert repr(second.report()) == repr(first.report())


def test_a_horde_with_a_lambda_is_not_made_from_a_file(tmp_path):
    questions = gvf.question_grid(
        {"u": gvf.policies.Uniform(2)}, {"odd": lambda t: t.reward}, [0.5]
    )
    horde(questions).save(tmp_path / "horde")
    with pytest.raises(ValueError, match=r"questions.cumulant\[0\] is <lambda>, which cannot be f"):
        gvf.load(tmp_path / "horde", trust=["test_saved"])

    class Inner(Tilted):
        pass

    horde(gvf.question_grid(Inner(("a", "b"), 0.6), {"reward": "reward"}, [0.5])).save(
        tmp_path / "bank"
    )
    with pytest.raises(ValueError, match=r"questions.banks\[0\] is Inner\(.*define it at the top"):
        gvf.load(tmp_path / "bank", trust=["test_saved"])


def test_an_exported_horde_predicts_the_same(tmp_path):
    first = horde(dtype="float32")
    first.observe(DATA[:100])
    first.export(tmp_path / "predictor")
    predictor = gvf.load(tmp_path / "predictor")
    assert (repr(predictor), predictor.names) == ("Predictor(40 questions)", first.names)
    found, states = predictor.predict(np.arange(5)), np.arange(5)
    np.testing.assert_allclose(found, first.predict(states), rtol=1e-6, atol=1e-6)
    assert found.shape == (5, 40)
