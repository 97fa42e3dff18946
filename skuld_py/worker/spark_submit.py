"""The command line that runs an application file by spark-submit, in a JVM that is the driver's own.

It is what PySpark's script starts in the end, started at once: that script runs a JVM to build the command line of
the next one, puts all settings on it, where every user of the machine reads them, and needs more of Java than
the wheel has. Settings are the worker's, the task's on top; the driver is always here, never in the cluster:
nobody here could end one there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from skuld_py.embedded.java import find_java
from skuld_py.worker import spark_conf, spark_jvm

DEPLOY_MODE = "spark.submit.deployMode"
DEFAULTS = {"spark.master": "local[*]", "spark.log.level": "WARN"}
"""What an application says is to be found in what it writes."""


def command(directory: Path, asked: Mapping[str, str], file: Path, arguments: Sequence[str],
            main_class: str | None, py_files: Sequence[Path],
            working_directory: Path | None = None) -> tuple[list[str], dict[str, str]]:
    """The command, and what is to be in its environment. Writes its settings into the directory."""
    files, java = spark_jvm.Files(directory / "spark"), find_java(directory=working_directory)
    (files.scratch / "tmp").mkdir(parents=True, mode=0o700)
    every = [*asked.get(spark_conf.PY_FILES, "").split(","), *map(str, py_files)]
    conf = spark_conf.whole(files, 1, {**DEFAULTS, "spark.app.name": file.stem, **asked, DEPLOY_MODE: "client"})
    if any(every):
        conf[spark_conf.PY_FILES] = ",".join(filter(None, every))
    line = [*spark_jvm.submit_command(files, conf, java, machine_learning=True),
            *(["--class", main_class] if main_class is not None else []), str(file), *arguments]
    return line, spark_jvm.submit_environment(java, conf, spark_conf.python_of(conf))
