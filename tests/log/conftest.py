"""The script that makes the files needs libraries that the tests do without."""

collect_ignore = ["make_files.py"]
