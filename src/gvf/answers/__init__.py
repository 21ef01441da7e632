"""Answers: from a log and a question file to predictions with intervals, and a page.

:func:`load` reads a question file, :func:`answer` answers it, and :func:`write` leaves the files.
The command `gvf learn` does all three.
"""

from gvf.answers.answer import Answer, Answered, answer
from gvf.answers.plan import Plan
from gvf.answers.question_file import example, load
from gvf.answers.read_inputs import Material, prepare
from gvf.answers.support_of_log import Diagnosed, diagnose
from gvf.answers.write_answer import write

__all__ = [
    "Answer",
    "Answered",
    "Diagnosed",
    "Material",
    "Plan",
    "answer",
    "diagnose",
    "example",
    "load",
    "prepare",
    "write",
]
