"""The launcher `yarn`: one application of Hadoop's distributed shell.

The distributed shell comes with Hadoop: it runs a script in so many containers. Its
client stays while the application runs. Other flags: `-queue gpu`, `-container_memory
4096`, `-container_vcores 2`. Containers must see the working directory at the same
path. The way to the launcher goes along in the script, which YARN keeps in the user's
own folder of HDFS.

Not tested with Hadoop, which is not in Debian: the command follows the documentation
and the source of Hadoop 3 (`distributedshell/Client.java`), and is tested with a
stand-in for `yarn` that runs the script in as many processes. So what a real cluster
says when it refuses a job, and how fast it ends containers, is untested.
"""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from . import submitted
from .door import DOOR

CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
JAR = "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-[0-9]*.jar"
#: A script that ends applications by their name: `yarn application -kill` wants an id,
#: which only the client has been told, and that may have been killed.
KILL = """yarn application -list </dev/null | tr -d ' ' | while read -r id name _
do [ "$name" = "$0" ] && yarn application -kill "$id" </dev/null; done"""
#: Milliseconds until the client kills the application; without it, ten minutes.
LONGEST = 2**31 - 1


def jar():
    """The path of the distributed shell. Raises `ValueError` when it isn't found."""
    homes = [os.environ.get("HADOOP_YARN_HOME"), os.environ.get("HADOOP_HOME"),
             Path(shutil.which("yarn")).resolve().parents[1]]
    for home in filter(None, homes):
        for path in sorted(Path(home).glob(JAR)):
            if not path.stem.endswith(("-tests", "-sources", "-javadoc")):
                return str(path)
    raise ValueError(f"there is no {JAR} in {homes[-1]}: set HADOOP_HOME to the folder "
                     "of Hadoop")


class Crew(submitted.Crew):
    """Agents in containers, which have no numbers; the client stays while they do."""

    tool, package, queue = "yarn", "Hadoop", "yarn application -list"
    goes_along = "the script"

    @classmethod
    def check(cls, plan):
        super().check(plan)
        jar()

    @staticmethod
    def file(job):
        """The script."""
        return os.path.join(tempfile.gettempdir(), submitted.name(job), "agent.sh")

    @classmethod
    def words(cls, plan, job):
        """A script that becomes an agent, in each of so many containers."""
        return ["yarn", CLIENT, "-jar", jar(), "-appname", submitted.name(job),
                "-num_containers", str(submitted.copies(plan)), "-shell_script",
                cls.file(job), "-timeout", str(LONGEST), *plan.settings.submit_args]

    def hand_over(self):
        agent = shlex.join(submitted.agent(self.plan, "-"))
        return f"#!/bin/bash\nexport {DOOR}={self.door.invitation}\nexec {agent}\n"

    @staticmethod
    def cancel(plan, job):
        return ["sh", "-c", KILL, submitted.name(job)]
