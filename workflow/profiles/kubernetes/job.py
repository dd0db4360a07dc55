"""One job of Snakemake as a Kubernetes Job: job.py submit --cpu N --memory MB SCRIPT | status NAME | cancel NAME...

It needs kubectl, configured, and a volume claim `fishpool` that all pods mount at /fishpool; the variables
FISHPOOL_IMAGE and FISHPOOL_CLAIM name others. The keys of models' servers are variables of the secret `fishpool`, if
there is one.
https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path


def submit(script: str, cpu: int, memory: int) -> None:
    """Start the job script in a pod; prints the job's name, which is all that Snakemake keeps of it."""
    name = f"fishpool-{secrets.token_hex(8)}"
    container = {
        "name": "job",
        "image": os.environ.get("FISHPOOL_IMAGE", "python:3.12-bookworm"),
        "command": ["bash", str(Path(script).resolve())],
        "workingDir": str(Path.cwd()),
        "envFrom": [{"secretRef": {"name": "fishpool", "optional": True}}],
        "resources": {"requests": {"cpu": str(cpu), "memory": f"{memory}M"}, "limits": {"memory": f"{memory}M"}},
        "volumeMounts": [{"name": "shared", "mountPath": "/fishpool"}],
    }
    claim = {"claimName": os.environ.get("FISHPOOL_CLAIM", "fishpool")}
    pod = {
        "restartPolicy": "Never",  # Snakemake decides what is tried again
        "containers": [container],
        "volumes": [{"name": "shared", "persistentVolumeClaim": claim}],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": "fishpool"}},
        "spec": {"backoffLimit": 0, "ttlSecondsAfterFinished": 86_400, "template": {"spec": pod}},
    }
    done = kubectl("create", "--filename", "-", given=json.dumps(job))
    if done.returncode:
        sys.exit(done.stderr)
    print(name)


def status(name: str) -> None:
    """Print success, failed or running, the three words that Snakemake knows."""
    done = kubectl("get", "job", name, "--output", "json")
    if done.returncode:
        # a job that somebody deleted will never end; a server that does not answer may answer the next time
        print("failed" if "NotFound" in done.stderr else "running")
        return
    conditions = json.loads(done.stdout)["status"].get("conditions", [])
    true = {condition["type"] for condition in conditions if condition["status"] == "True"}
    print("success" if "Complete" in true else "failed" if "Failed" in true else "running")


def kubectl(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *arguments], input=given, capture_output=True, text=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["submit", "status", "cancel"])
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--memory", type=int, default=1000, help="megabytes")
    parser.add_argument("names", nargs="+", help="the job script to submit, or names of jobs")
    arguments = parser.parse_args()
    if arguments.action == "submit":
        submit(arguments.names[0], arguments.cpu, arguments.memory)
    elif arguments.action == "status":
        status(arguments.names[0])
    else:
        sys.exit(kubectl("delete", "job", "--ignore-not-found", *arguments.names).returncode)


if __name__ == "__main__":
    main()
