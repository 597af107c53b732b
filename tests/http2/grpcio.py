"""gRPC on grpcio, with bytes as messages.

grpcio.py server [CERT KEY]      prints the port that it listens on
grpcio.py client ADDRESS CA      makes calls of each kind; in cleartext if CA is empty; prints `ok`
grpcio.py deadline ADDRESS CA    makes calls whose deadlines pass
"""

import sys
import threading
from concurrent import futures

import grpc

SERVICE = "weir.Test"
LARGE = bytes(range(251)) * 8000


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Calls:
    """The server's calls by name."""

    def __init__(self):
        self.finished = threading.Semaphore(0)

    def unary(self, request, context):
        """Returns the request, and the client's metadata as initial and trailing metadata."""
        sent = dict(context.invocation_metadata())
        context.send_initial_metadata([("x-initial", sent.get("x-initial", ""))])
        context.set_trailing_metadata([("x-trailing-bin", sent.get("x-trailing-bin", b""))])
        return request

    def status(self, request, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, request.decode())

    def upload(self, requests, context):
        return str(sum(len(request) for request in requests)).encode()

    def download(self, request, context):
        for size in request.split():
            yield LARGE[: int(size)]

    def echo(self, requests, context):
        yield from requests

    def wait(self, request, context):
        """Responds once, and then waits until the client has ended the call."""
        over = threading.Event()

        # grpcio does not resume a generator whose call has ended, so the end is noted here.
        def end():
            self.finished.release()
            over.set()

        if not context.add_callback(end):
            end()
        yield request
        over.wait(60)

    def ended(self, request, context):
        """Waits until a call of `wait` has ended."""
        return str(self.finished.acquire(timeout=30)).encode()


def serve(identity):
    calls = Calls()
    kinds = {
        "unary": grpc.unary_unary_rpc_method_handler,
        "status": grpc.unary_unary_rpc_method_handler,
        "upload": grpc.stream_unary_rpc_method_handler,
        "download": grpc.unary_stream_rpc_method_handler,
        "echo": grpc.stream_stream_rpc_method_handler,
        "wait": grpc.unary_stream_rpc_method_handler,
        "ended": grpc.unary_unary_rpc_method_handler,
    }
    handlers = {name: kind(getattr(calls, name)) for name, kind in kinds.items()}
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=20))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    if identity:
        chain, key = map(read, identity)
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


def equal(got, expected):
    if got != expected:
        sys.exit(f"got {str(got)[:200]}, expected {str(expected)[:200]}")


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    sys.exit("a call succeeded that must fail")


def connect(address, ca):
    if ca:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(read(ca)))
    return grpc.insecure_channel(address)


def deadline(address, ca):
    channel = connect(address, ca)
    wait, ended = channel.unary_stream(f"/{SERVICE}/wait"), channel.unary_unary(f"/{SERVICE}/ended")
    for _ in range(5):
        equal(failure(lambda: list(wait(b"1", timeout=0.3)))[0], grpc.StatusCode.DEADLINE_EXCEEDED)
        equal(ended(b"", timeout=60), b"True")
    channel.close()
    print("ok")


def client(address, ca):
    channel = connect(address, ca)
    unary, status, ended = (channel.unary_unary(f"/{SERVICE}/{name}") for name in ("unary", "status", "ended"))
    download, wait = (channel.unary_stream(f"/{SERVICE}/{name}") for name in ("download", "wait"))
    upload = channel.stream_unary(f"/{SERVICE}/upload")
    echo = channel.stream_stream(f"/{SERVICE}/echo")

    for request in (b"", b"1", LARGE):
        equal(unary(request, timeout=60), request)
    metadata = [("x-initial", "a, b"), ("x-trailing-bin", b"\0\1\xff")]
    response, call = unary.with_call(b"1", timeout=60, metadata=metadata)
    equal(dict(call.initial_metadata())["x-initial"], "a, b")
    equal(dict(call.trailing_metadata())["x-trailing-bin"], b"\0\1\xff")

    message = "\t\n 100 % Zoë €\r\n"
    equal(failure(lambda: status(message.encode(), timeout=60)), (grpc.StatusCode.FAILED_PRECONDITION, message))
    unknown = channel.unary_unary(f"/{SERVICE}/unknown")
    equal(failure(lambda: unknown(b"", timeout=60))[0], grpc.StatusCode.UNIMPLEMENTED)

    equal(upload((LARGE for _ in range(5)), timeout=60), str(5 * len(LARGE)).encode())
    equal(upload(iter(()), timeout=60), b"0")
    equal(b"".join(download(b"0 1 70000 2008000", timeout=60)), b"" + LARGE[:1] + LARGE[:70000] + LARGE)
    equal(list(download(b"", timeout=60)), [])

    # Each message is sent after the response to the one before.
    turn = threading.Semaphore(1)

    def messages():
        for size in (0, 1, 70000, len(LARGE)):
            turn.acquire()
            yield LARGE[:size]

    sizes = []
    for part in echo(messages(), timeout=60):
        sizes.append(len(part))
        turn.release()
    equal(sizes, [0, 1, 70000, len(LARGE)])

    many = [unary.future(LARGE[:size], timeout=60) for size in range(0, 200_000, 1000)]
    equal([len(call.result()) for call in many], list(range(0, 200_000, 1000)))

    call = wait(b"1", timeout=60)
    equal(next(call), b"1")
    call.cancel()
    equal(failure(lambda: next(call))[0], grpc.StatusCode.CANCELLED)
    equal(ended(b"", timeout=60), b"True")
    channel.close()
    print("ok")


if sys.argv[1] == "server":
    serve(sys.argv[2:])
elif sys.argv[1] == "deadline":
    deadline(*sys.argv[2:])
else:
    client(*sys.argv[2:])
