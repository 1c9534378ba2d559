"""Watch a run, and go on where this program was ended: python3 examples/resume.py RUN

The number of the last event is kept in a file beside the run's id.
"""

import asyncio
import pathlib
import sys

from amux import Client


async def main(run_id: str) -> None:
    place = pathlib.Path(f"{run_id}.seq")
    after = int(place.read_text()) if place.exists() else 0
    async with await Client().open(run_id, after=after) as run:
        async for event in run:
            print(event.seq, event.type)
            place.write_text(str(event.seq))


asyncio.run(main(*sys.argv[1:]))
