"""How fast the samplers are, next to packaged ones: ``python -m benchmarks``, or ``make bench``.

Every part is a module with a function ``rows(effort)`` that measures one kind of work and returns
lines of a table: :mod:`.transitions` (whole transitions), :mod:`.indices` (slots only),
:mod:`.compiled` (kernels in a compiled loop), :mod:`.questions` (many questions at once),
:mod:`.neural` (lanes of networks), :mod:`.racing` (steps of the simulators), :mod:`.first_use`
(start-up and compilation) and :mod:`.endurance` (exactness after 1e8 insertions).
Nothing here fails on a slow machine: a target is met or it is not, and the table says which.
"""
