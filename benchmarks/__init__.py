"""Benchmarks of the samplers and their peers: ``python -m benchmarks``, or ``make bench``.

Every part is a module with a function ``rows(effort)`` that measures one kind of work and returns
lines of a table: :mod:`.transitions` (whole transitions), :mod:`.indices` (slots only),
:mod:`.compiled` (kernels in a compiled loop), :mod:`.questions` (draws for many questions),
:mod:`.horde` (thousands of questions, learned together), :mod:`.horde_gpu` (a million on a GPU),
:mod:`.neural` (lanes of networks), :mod:`.racing` (steps of the simulators), :mod:`.first_use`
(start-up and compilation), :mod:`.endurance` (exactness after 1e8 insertions) and :mod:`.logs`
(errors of answers from a log, beside other libraries).
Nothing here fails on a slow machine; the table says which targets are met. :mod:`.lanes` needs a
GPU and is run alone, as ``python -m benchmarks.lanes``.
"""
