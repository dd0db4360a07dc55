"""A SLURM cluster of one node, in a folder of its own: real daemons, started and stopped by a context manager.

It is the machinery of test_workflow_slurm.py and holds no test. Debian's munge, slurmctld, slurmd and slurm-client are
needed, and root, as whom slurmd starts jobs; no systemd, no accounting database. https://slurm.schedmd.com/slurm.conf.html
"""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
PROGRAMS = (*DAEMONS, "sbatch", "srun", "squeue", "scancel", "sinfo")
# More than this machine may have, and it is told so (config_overrides): a job that asks for more waits for ever.
CPUS, MEBIBYTES = 8, 16_000

SETTINGS = """\
ClusterName=fishpool
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MinJobAge=600
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={mebibytes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
"""


def missing() -> str:
    """Why no cluster can run here; empty if one can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=_path())]
    if absent:
        return f"SLURM is not installed: {', '.join(absent)}"
    if not find_spec("snakemake_executor_plugin_slurm"):
        return "the extra `cluster` is not installed"
    return "" if os.geteuid() == 0 else "slurmd runs as root"


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """The environment in which SLURM's programs find the cluster; all its jobs and daemons end with the context."""
    # not pytest's folder: the path of a socket may have 107 characters
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    settings = SETTINGS.format(
        folder=folder, host=socket.gethostname().split(".")[0], ports=_free_ports(), cpus=CPUS, mebibytes=MEBIBYTES
    )
    (folder / "slurm.conf").write_text(settings)
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    environment = os.environ | {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": f"{folder}/bin:{_path()}"}
    # Snakemake's plugin keeps SLURM_CONF from the srun inside a job; on a real cluster the file is in /etc/slurm.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun", path=_path())} "$@"\n')
    srun.chmod(0o755)
    munge = [f"--{name}-file={folder}/munged.{name}" for name in ("pid", "log", "seed")]
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for command in (
            ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket", *munge],
            ["slurmctld", "-D"],
            ["slurmd", "-D"],
        ):
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
            )
            stack.callback(_stop, process)
        stack.callback(subprocess.run, ["scancel", "--full", "--user=root"], env=environment, check=False)
        _wait_until_idle(folder, environment)
        yield {name: environment[name] for name in ("SLURM_CONF", "PATH")}


def _path() -> str:
    """Debian puts daemons where only root looks."""
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    until = time.monotonic() + 60
    while True:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True, check=False
        )
        if done.stdout.strip() == "idle":
            return
        if time.monotonic() > until:
            logs = "\n".join(log.read_text() for log in folder.glob("*.log"))
            raise RuntimeError(f"the node does not come up: {done.stdout}{done.stderr}\n{logs}")
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
