"""httpx over HTTP/2. Usage: httpx_client.py BASE CA; sends many requests at once and prints `ok`."""

import asyncio
import ssl
import sys

import httpx

base, ca = sys.argv[1:]


def patterned(length):
    """Byte i is i mod 251: a shift by any power of two shows."""
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def check(response, status, body):
    got = (response.http_version, response.status_code, response.content)
    if got != ("HTTP/2", status, body):
        sys.exit(f"{response.request} {got[:2]}, {len(response.content)} bytes of {len(body)}")


async def pieces(body):
    for at in range(0, len(body), 3000):
        yield body[at : at + 3000]


async def download(client, size):
    check(await client.get(f"/bytes/{size}"), 200, patterned(size))


async def upload(client, size):
    """Of unknown length for odd multiples of 5000."""
    body = patterned(size)
    content = pieces(body) if size // 5000 % 2 else body
    check(await client.post("/echo", content=content), 200, body)


async def main():
    # Without HTTP/1.1, it speaks HTTP/2 by prior knowledge in cleartext.
    context = ssl.create_default_context(cafile=ca)
    async with httpx.AsyncClient(
        base_url=base, verify=context, http1=False, http2=True, trust_env=False, timeout=60
    ) as client:
        check(await client.get("/204"), 204, b"")
        check(await client.head("/bytes/1000"), 200, b"")
        await asyncio.gather(*(download(client, number * 5000) for number in range(60)))
        await asyncio.gather(*(upload(client, number * 5000) for number in range(60)))
        await download(client, 5_000_000)
    print("ok")


asyncio.run(main())
