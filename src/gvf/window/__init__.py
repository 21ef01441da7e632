"""Windows: the most recent transitions as columns, with the masses by which they are drawn."""

from gvf.window.buffer import Buffer, Rows
from gvf.window.frames import FrameWindow
from gvf.window.window import Window

__all__ = ["Buffer", "FrameWindow", "Rows", "Window"]
