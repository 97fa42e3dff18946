"""Texts of SQL and the statements in them: for the test of the splitter, and for its comparison with Spark's."""

from __future__ import annotations

TEXTS: dict[str, list[str]] = {
    "select 1": ["select 1"],
    "select 1; select 2;": ["select 1", "select 2"],
    ";; select 1 ;\n; ": ["select 1"],
    "select 'it''s; one'; select 2": ["select 'it''s; one'", "select 2"],
    r"select 'it\'s; one'; select 2": [r"select 'it\'s; one'", "select 2"],
    r"select '\\'; select 2": [r"select '\\'", "select 2"],
    'select "a;b"; select 2': ['select "a;b"', "select 2"],
    "select 1 as `a;``b`; select 2": ["select 1 as `a;``b`", "select 2"],
    "select 1 -- one; only\n; select 2": ["select 1 -- one; only", "select 2"],
    "select 1 /* ; */; select 2": ["select 1 /* ; */", "select 2"],
    "select 1 /* /* ; */ ; */; select 2": ["select 1 /* /* ; */ ; */", "select 2"],
    "-- it's a comment\nselect 1; select 2": ["-- it's a comment\nselect 1", "select 2"],
    "select 1; -- the end": ["select 1"],
    "/* nothing; */": [],
    "": [],
    "select 3-1; select 6/2": ["select 3-1", "select 6/2"],
    "select 1 as begin; select 2": ["select 1 as begin", "select 2"],
    "select ':n;'; select :n": ["select ':n;'", "select :n"],
}

OF_THIS_ALONE: dict[str, list[str]] = {
    r"select r'\'; select 2": [r"select r'\'", "select 2"],
    'select R"\\"; select 2': ['select R"\\"', "select 2"],
    "select 1 -- one \\\n; more\n; select 2": ["select 1 -- one \\\n; more", "select 2"],
    "create view v as $$ a; b $$; select 2": ["create view v as $$ a; b $$", "select 2"],
    "create view v as $x$ a; $$ b $x$; select 2": ["create view v as $x$ a; $$ b $x$", "select 2"],
    "begin select 1; select 2; end": ["begin select 1; select 2; end"],
    "-- a script\n BEGIN select 1; END;": ["-- a script\n BEGIN select 1; END;"],
}
"""Where Spark's parser reads what the splitter of its command line does not know."""
