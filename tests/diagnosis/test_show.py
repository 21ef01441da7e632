"""How a diagnosis is shown."""

import numpy as np
import pytest
from own_corrections import SquareRoot

import gvf


@pytest.fixture
def shown():
    rng = np.random.default_rng(0)
    rho = np.where(rng.random(500) < 0.3, 0.0, rng.lognormal(0.0, 1.0, 500))
    corrections = [
        gvf.corrections.IS(),
        gvf.corrections.IR(),
        gvf.corrections.VTrace(5.0),
        gvf.corrections.WISMinibatch(),
        SquareRoot(),
    ]
    return gvf.diagnose(rho, rng.normal(size=(500, 2)), corrections=corrections, batch_size=8)


def test_the_record_shows_itself_in_words(shown):
    text = " ".join(repr(shown).split())
    for part in (
        "500 transitions, batches of 8: use IR",
        shown.reason[:40],
        f"mean {shown.mean_ratio:.3g} ±",
        f"largest {shown.max_ratio:.4g}",
        "% zeros",
        f"effective sample size: {shown.effective_sample_size:,.0f}",
        f"k-hat {shown.k_hat:.2f}",
        f"V-trace(5.0) {shown.moments['V-trace(5.0)'].variance.value:.3g}",
    ):
        assert part in text
    assert max(map(len, repr(shown).splitlines())) <= 88
    assert "WARNING" not in text
    doubtful = gvf.diagnose(np.full(200, 0.5), np.ones(200))
    assert f"WARNING: {doubtful.warnings[0]}" in " ".join(repr(doubtful).split())


def test_tables_show_the_size_of_rho_f_beside_that_of_rho():
    from rich.console import Console

    inputs, console = np.ones((2, 50)), Console(width=100)
    inputs[1, :10] = 20.0
    with console.capture() as captured:
        console.print(gvf.diagnose(inputs, np.ones(50), corrections=[gvf.corrections.EmphaticIR()]))
    text = " ".join(captured.get().split())
    assert "effective sample size 50 (100 %) ... of rho F 14.3 (29 %)" in text
    assert "Corrections by rho F aim at" in text


def test_the_record_shows_itself_as_tables(shown):
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as captured:
        console.print(shown)
    text = captured.get()
    for part in ("effective sample size", "noise /", "V-trace(5.0)", "WIS-Minibatch"):
        assert part in text
    row = next(line for line in text.splitlines() if "SquareRoot" in line)
    half = shown.moments["SquareRoot"]
    size = f"{half.effective_sample_size:.0f}"
    assert shown.effective_sample_size < half.effective_sample_size < 500
    assert row.split()[1] == f"{half.variance.value:.3g}"
    assert row.split()[-1] == size
    assert f"IS - BC-IR: {shown.comparison.difference:.3g}" in text
    assert f"{100 * shown.comparison.exceptions:.2g} % of the transitions" in text
    assert f"correlation {shown.comparison.correlation:.2g}" in text
    assert "Use IR." in text


def test_theorems_are_told_to_hold_where_they_do():
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as captured:
        console.print(gvf.diagnose([0.5, 1.5], [1.0, 1.0]))
    assert "Theorem 3.3: its condition holds" in captured.get()
    assert "Theorem 3.4: its condition holds" in captured.get()


def test_the_picture_has_the_zeros_apart_and_a_bar_for_each_correction(shown):
    import matplotlib.pyplot as plt

    figure = shown.plot()
    left, right = figure.axes
    assert "0" in [label.get_text() for label in left.get_xticklabels()]
    bars = {round(bar.get_height(), 9) for bar in left.patches}
    assert round(shown.zero_ratios, 9) in bars
    assert [label.get_text() for label in right.get_yticklabels()] == list(shown.moments)
    widths = [bar.get_width() for bar in right.patches]
    assert widths == [moments.variance.value for moments in shown.moments.values()]
    plt.close(figure)
    mine, axes = plt.subplots(2, 1)
    assert shown.plot(axes) is mine
    plt.close(mine)


@pytest.mark.parametrize(
    ("rho", "updates"),
    [
        (np.ones(5), np.zeros(5)),
        (np.array([2.0]), np.array([1.0])),
        (np.array([0.0, 1e-200, 1e100]), np.array([1.0, 2.0, 3.0])),
        (np.array([1e-12, 1.0, 9.0]), np.array([1.0, 2.0, 3.0])),
    ],
    ids=["no update", "one transition", "far apart", "tiny"],
)
def test_odd_windows_can_be_shown(rho, updates):
    import matplotlib.pyplot as plt
    from rich.console import Console

    found = gvf.diagnose(rho, updates)
    figure = found.plot()
    figure.canvas.draw()
    plt.close(figure)
    with Console().capture():
        Console().print(found)
    assert repr(found).startswith("Diagnosis of")


def test_a_histogram_counts_everything_once():
    rho = np.array([0.0, 0.0, 1e-9, 0.02, 0.5, 0.5, 3.0, 70.0])
    edges, transitions, mass = gvf.diagnose(rho, np.ones(8)).histogram
    assert len(transitions) == len(mass) == len(edges) + 1
    assert edges[0] == -5.0  # six decades below the largest, and whole
    assert (transitions[0], mass[0]) == (2 / 8, 0.0)
    assert transitions[1] == 1 / 8
    for low, high, share, held in zip(
        10 ** edges[:-1], 10 ** edges[1:], transitions[2:], mass[2:], strict=True
    ):
        inside = (rho >= low) & (rho < high)
        assert share == np.mean(inside)
        assert held == pytest.approx(rho[inside].sum() / rho.sum())
    assert transitions.sum() == pytest.approx(1.0)
