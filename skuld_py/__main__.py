"""``python -m skuld_py`` is the ``skuld`` command, for machines where scripts are not on the path."""

from skuld_py.cli.main import main

if __name__ == "__main__":
    main()
