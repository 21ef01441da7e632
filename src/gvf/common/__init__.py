"""Tools for every room, which know nothing of prediction: files, names, arrays, progress."""
