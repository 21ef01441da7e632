"""Names of the laboratory say what a value is, and a file or class has its name alone."""

from names import MOST, repeated_classes, repeated_files, share


def test_names_say_what_a_value_is() -> None:
    assert share("gvf_lab") < MOST


def test_no_file_name_stands_twice() -> None:
    assert not repeated_files("gvf_lab")


def test_no_class_name_stands_twice() -> None:
    assert not repeated_classes("gvf_lab")
