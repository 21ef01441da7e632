"""Windows: the most recent transitions as columns, with the masses by which they are drawn."""

from gvf.window.buffer import Buffer, Rows
from gvf.window.draw_batches import draw_batches
from gvf.window.frame_window import FrameWindow
from gvf.window.window import Window

__all__ = ["Buffer", "FrameWindow", "Rows", "Window", "draw_batches"]
