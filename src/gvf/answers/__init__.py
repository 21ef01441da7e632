"""Answers: from a log and a question file to predictions with intervals, and a page.

:func:`load` reads a question file, :func:`answer` answers it, and :func:`write` leaves the files.
The command `gvf learn` does all three.
"""

from gvf.answers.answer import Answer, Answered, answer
from gvf.answers.engine import Engine
from gvf.answers.material import Material, prepare
from gvf.answers.outcome import write
from gvf.answers.plan import Plan
from gvf.answers.support import Diagnosed, diagnose
from gvf.answers.toml import example, load

__all__ = [
    "Answer",
    "Answered",
    "Diagnosed",
    "Engine",
    "Material",
    "Plan",
    "answer",
    "diagnose",
    "example",
    "load",
    "prepare",
    "write",
]
