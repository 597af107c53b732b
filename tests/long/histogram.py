"""Reads the histograms in the results of `weir load --json`."""

import base64
import struct

# Values below this are exact; each further power of two has half as many buckets.
SUB_BUCKETS = 2048


def slower_than(response, ms):
    """The number of responses that took longer."""
    return sum(count for ns, count in buckets(response["hdr_v2"]) if ns > ms * 1e6)


def buckets(encoded):
    """The lowest value in nanoseconds and the count of each bucket of an HdrHistogram in its V2 encoding."""
    data = base64.b64decode(encoded)
    _, length = struct.unpack(">II", data[:8])
    at, index, found = 40, 0, []
    while at < 40 + length:
        number, at = varint(data, at)
        # Zigzag: a negative number skips as many empty buckets.
        number = (number >> 1) ^ -(number & 1)
        if number < 0:
            index -= number
        else:
            found.append((lowest(index), number))
            index += 1
    return found


def lowest(index):
    if index < SUB_BUCKETS:
        return index
    shift, sub = divmod(index, SUB_BUCKETS // 2)
    return (SUB_BUCKETS // 2 + sub) << (shift - 1)


def varint(data, at):
    number = 0
    for nth in range(9):
        byte = data[at]
        at += 1
        # The ninth byte has eight bits.
        number |= (byte if nth == 8 else byte & 0x7F) << (7 * nth)
        if not byte & 0x80:
            break
    return number, at
