"""Mutants of what people meet who use an archive: what is said, what is left behind, what is known of it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

DEV, SOURCE, VERBS, PLACES, LAYOUT = (f"tests/{name}.py::" for name in (
    "cli/test_dev", "archive/test_source", "archive/test_verbs", "archive/test_places", "archive/test_layout"))

MUTANTS: tuple[Mutant, ...] = (
    mutant("dev-archives-no-more", "skuld dev goes on without its archiver and says nothing", "dev._Watcher.look",
           "            self._note_archiver(self.archiver.running)\n", "            pass\n", "A1",
           DEV + "test_an_archiver_that_has_ended_is_said_once_with_what_it_said", seeds=0),
    mutant("dev-hides-its-archive", "skuld dev does not say where its archive is", "dev._introduce",
           "    if archiver is not None:\n        click.echo(", "    if False:\n        click.echo(", "A1",
           DEV + "test_where_the_archive_is_and_how_it_is_asked_is_said", seeds=0),
    mutant("archiver-stays-when-interrupted", "an archiver that is interrupted keeps its partitions for a while",
           "source.source_of", "                source.leave()\n", "                pass\n", "X1",
           SOURCE + "test_who_is_interrupted_leaves_and_asks_nothing_more", seeds=0),
    mutant("archiver-asks-behind-its-end", "an archiver that was interrupted asks on", "ClusterSource._left",
           "            self._under_way.cancel()\n", "            pass\n", "X1",
           SOURCE + "test_who_is_interrupted_leaves_and_asks_nothing_more", seeds=0),
    mutant("archive-of-a-mistyped-root", "a root that is refused has an archive from then on",
           "cli.archive._check_known", "    if root not in (None, place.name):\n", "    if False:\n", "A1",
           VERBS + "test_a_place_that_is_not_the_clusters_is_refused_and_nothing_is_made_there", seeds=0),
    mutant("archive-replaced-unnoticed", "an archiver goes on after the cluster was given another archive",
           "cli.archive._run", "            if not is_first:\n                enter()\n", "", "A1",
           VERBS + "test_where_the_cluster_was_given_another_archive_meanwhile_nothing_more_is_moved", seeds=0),
    mutant("archiver-says-nothing-for-ever", "each run that found nothing to do is a line", "cli.archive._run",
           "            if is_first or as_json or report.deleted or report.batches or not report.is_done:\n",
           "            if True:\n", "A1",
           VERBS + "test_of_runs_that_found_nothing_to_do_programs_are_told_and_people_once", seeds=0),
    mutant("archive-at-its-former-place", "of an archive that has moved its former place is told",
           "Archiving.enter_archive", "is_known and found.root == root", "is_known", "A1",
           LAYOUT + "test_a_second_root_is_refused_with_the_remedy", seeds=0),
    mutant("archive-unreadable-traceback", "who may not read an archive is shown a traceback",
           "places.check_archive", "    except OSError as error:\n",
           "    except FileExistsError as error:\n", "A1",
           PLACES + "test_an_archive_that_may_not_be_read_is_said_in_one_line", seeds=0),
    mutant("archive-unlisted-is-empty", "an archive whose directory may not be listed holds nothing",
           "places.check_archive", "        os.listdir(path)\n", "", "A1",
           PLACES + "test_an_archive_that_may_not_be_read_is_said_in_one_line", seeds=0),
    mutant("day-of-anything", "a day that is none has no files", "values.Day.convert",
           "            return date.fromisoformat(value.strip()).isoformat()\n",
           "            return value\n", "A1",
           VERBS + "test_a_day_that_is_none_is_answered_with_what_one_is", seeds=0),
    mutant("compaction-hides-what-it-left", "nobody is told why files are not compacted",
           "archive_compact.say_compacted", "    if done.left:\n", "    if False:\n", "A1",
           VERBS + "test_a_compaction_says_what_it_leaves_alone_and_why", seeds=0),
    mutant("compaction-unseen", "on a terminal a long compaction shows nothing", "Compaction._merge",
           "            self._on_part(day, queue, min(1.0, rows / all_rows))\n", "", "A1",
           VERBS + "test_on_a_terminal_a_compaction_shows_a_bar_of_which_nothing_is_left", seeds=0),
    mutant("compaction-cut-short-is-done", "a compaction that is interrupted ends as if it was done",
           "archive_compact.compact", "    if not done:\n", "    if False:\n", "A1",
           VERBS + "test_a_compaction_that_is_interrupted_says_so_and_loses_nothing", seeds=0),
    mutant("restore-wants-an-hour", "nothing is restored where ended tasks are kept for less than an hour",
           "history_restore._stored", 'if refusal.code != "bad_unique" or len(windows) == 1:', "if True:", "A1",
           "tests/archive/test_restore.py::"
           "test_a_name_is_unique_for_as_long_as_nodes_allow_and_none_comes_twice", seeds=0),
    mutant("history-hides-a-column", "help does not name all columns", "cli.history", "outputs (JSON), ", "", "A1",
           VERBS + "test_help_names_every_column", seeds=0),
)
