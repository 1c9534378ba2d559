"""Start a run, approve what it asks, print the answer: python3 examples/approve.py demo '[approve]'"""

import asyncio
import sys

from amux import Client
from amux.events import ApprovalRequest, InputRequired


async def main(agent: str, prompt: str) -> None:
    async with await Client().run(agent, prompt, approve="ask") as run:
        async for event in run:
            match event:
                case ApprovalRequest(interaction_id=id, action=action, detail=detail):
                    print(f"approved {action}: {detail}", file=sys.stderr)
                    await run.approve(id)
                case InputRequired(interaction_id=id, question=question):
                    await run.answer(input(f"{question} "), id)
        print((await run.wait()).check().text)


asyncio.run(main(*sys.argv[1:]))
