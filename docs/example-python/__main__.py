"""The smallest adapter in Python: it lets amux run tr.

It does by hand what the Go SDK does for its users; the numbers in brackets are
those of the table in pluginapi/README.md.
"""

import json
import os
import signal
import sys
import threading
from concurrent import futures

import grpc
from google.protobuf import any_pb2, json_format
from google.rpc import status_pb2
from grpc_status import rpc_status

import amuxplugin1_pb2 as pb
import amuxplugin1_pb2_grpc as rpc

NAME, VERSION = "whisper", "0.1.0"
PIECE = 512 << 10  # data leaves in pieces of at most this
MESSAGE = 64 << 20  # [7]


def description():
    return pb.DescribeResponse(
        plugin=NAME,
        version=VERSION,
        sdk="python",
        agents=[
            pb.Agent(
                id="whisper",
                display_name="Whisper",
                summary="repeats the prompt in small letters",
                program="tr",
                event_types=["text_delta"],
            )
        ],
    )


def refuse(context, code, message):
    """An error of the contract is a status with an Error in its details."""
    detail = any_pb2.Any()
    detail.Pack(pb.Error(code=code, message=message))
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message, details=[detail])
    context.abort_with_status(rpc_status.to_status(status))


class Conversation:
    """One run. Outputs depend on the inputs so far alone [19]."""

    def __init__(self):
        self.pieces = {}  # of lines that are not complete, by kind

    def handle(self, item):
        """Returns the outputs of one input, without their numbers."""
        if item.kind in (pb.INPUT_STDOUT, pb.INPUT_STDERR):
            kept = self.pieces.setdefault(item.kind, [])
            if item.discard:  # too long; the host has logged it
                kept.clear()
                return []
            kept.append(item.data)
            if item.more:
                return []
            line = b"".join(kept).decode("utf-8", "replace")  # [26]
            kept.clear()
            if item.kind == pb.INPUT_STDERR:
                return [event("log", {"source": "stderr", "line": line})]
            return [event("text_delta", {"delta": line + "\n"})]
        if item.kind == pb.INPUT_END:
            return [pb.Output(kind=pb.OUTPUT_CLOSE_STDIN)]
        if item.kind == pb.INPUT_SPAWN_FAILED:
            return [outcome("SPAWN_ERROR", item.data.decode("utf-8", "replace"))]
        if item.kind == pb.INPUT_EXIT:  # [32], [33]
            if item.exit.asked:
                return [outcome("ABORTED", "")]
            if item.exit.signal or item.exit.code:
                return [outcome("AGENT_FAILED", f"tr exited with {item.exit.signal or item.exit.code}")]
            return [outcome("", "")]
        return []  # [2]


def event(kind, fields):
    data = json.dumps(fields, ensure_ascii=False).encode("utf-8")
    return pb.Output(kind=pb.OUTPUT_EVENT, type=kind, data=data)


def outcome(code, message):
    return pb.Output(kind=pb.OUTPUT_OUTCOME, outcome=pb.Outcome(code=code, message=message))


def numbered(n, outputs):
    """Outputs are numbered (n, k), long ones leave in pieces [21]."""
    for k, output in enumerate(outputs):
        data = output.data
        while True:
            piece = pb.Output()
            piece.CopyFrom(output)
            piece.n, piece.k, piece.data = n, k, data[:PIECE]
            data = data[PIECE:]
            piece.more = bool(data)
            yield piece
            if not data:
                break


class Adapter(rpc.AdapterServicer):
    def Describe(self, request, context):
        return description()

    def Plan(self, request, context):
        if request.agent != "whisper":
            refuse(context, "AGENT_NOT_FOUND", f"plugin {NAME} has no adapter for {request.agent!r}")
        return pb.PlanResponse(
            plan=pb.SpawnPlan(
                program=request.program,
                args=["A-Z", "a-z"],
                stdin=pb.STDIN_PROMPT,
                initial_stdin=(request.options.prompt + "\n").encode(),
            )
        )

    def Converse(self, requests, context):
        conversation, next_n = None, 1
        for request in requests:
            if request.first_n != next_n:
                refuse(context, "VALIDATION_ERROR", f"input {request.first_n} came, {next_n} was expected")
            for item in request.inputs:
                if item.kind == pb.INPUT_START:
                    if item.start.agent != "whisper":
                        refuse(context, "AGENT_NOT_FOUND", f"plugin {NAME} has no adapter for {item.start.agent!r}")
                    conversation = Conversation()
                if conversation is None:
                    refuse(context, "VALIDATION_ERROR", "the first input must be INPUT_START")
                for output in numbered(next_n, conversation.handle(item)):
                    yield pb.ConverseResponse(outputs=[output], done=next_n - 1)
                next_n += 1
            yield pb.ConverseResponse(done=next_n - 1)  # [22]

    def DetectAuth(self, request, context):
        return pb.DetectAuthResponse()  # tr needs no sign-in


def exit_with_host(fd):
    """The lifeline: end of file means that the host is gone [3]."""
    try:
        while os.read(fd, 1):
            pass
    except OSError:
        pass
    os._exit(0)


def main():
    if sys.argv[1:] == ["--amux-describe"]:  # [6]
        print(json_format.MessageToJson(description(), preserving_proto_field_name=True))
        return
    if os.environ.get("AMUX_PLUGIN") != "adapter":  # [5]
        sys.exit(f"{NAME} {VERSION} is a plugin of amux. It is started by amux, not by hand.")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # [4]
    threading.Thread(target=exit_with_host, args=(int(os.environ["AMUX_PLUGIN_LIFELINE_FD"]),), daemon=True).start()
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=256),  # one for each run at a time [8]
        options=[("grpc.max_receive_message_length", MESSAGE), ("grpc.max_send_message_length", MESSAGE)],
    )
    rpc.add_AdapterServicer_to_server(Adapter(), server)
    path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "whisper.sock")
    server.add_insecure_port("unix:" + path)
    server.start()
    print(f"1|1|unix|{path}|grpc", flush=True)  # the handshake, and nothing before it [1]
    server.wait_for_termination()


main()
