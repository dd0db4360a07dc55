"""One process of several on one journal: asks N questions of a scripted server, each call leaving a line in a file.

    python ask_many.py JOURNAL CALLS_FILE N LATENCY_S [FILE_SIZE_LIMIT]

Prints {"text by round": .., "from_journal": ..} as JSON, or the sentence of a Stop with exit code 2.
"""

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

from scripted_backend import MODEL, Server, a_reply, question

from fishpool.models.client import Client
from fishpool.models.faults import Stop


async def main(journal, calls, number, latency):
    def answer(endpoint, request):
        with Path(calls).open("ab", buffering=0) as file:
            file.write(f"{request.round}\n".encode())
        return a_reply(f"round {request.round} by {os.getpid()}")

    server = Server(journal, answer, concurrency=4, latency=latency)
    client = Client(server.site, [MODEL], None)
    await client.open()
    try:
        answers = await asyncio.gather(*(client.ask(MODEL, **question(round=n)) for n in range(1, number + 1)))
    finally:
        await client.close()
    return {
        "texts": [answered.reply.text for answered in answers],
        "from_journal": sum(answered.from_journal for answered in answers),
    }


if __name__ == "__main__":
    journal, calls, number, latency, *limit = sys.argv[1:]
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), int(limit[0])))
    try:
        print(json.dumps(asyncio.run(main(journal, calls, int(number), float(latency)))))
    except Stop as stop:
        print(stop, file=sys.stderr)
        sys.exit(2)
