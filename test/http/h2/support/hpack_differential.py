"""Compares the decoder and encoder of Heddle with python3-hpack: PROGRAM SECONDS SEED, where PROGRAM is hpack_peer.c.

Random blocks, most of them made by python3-hpack's encoder and then changed a little, give the same fields, the same size
of the dynamic table, or are malformed for both. What Heddle's encoder sends, python3-hpack reads.
"""
import random
import subprocess
import sys
import time

from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple
from hpack.exceptions import HPACKDecodingError

NAMES = [b":method", b":path", b":status", b"cookie", b"content-type", b"x-name", b"", b"\xff\x00", b"accept-encoding"]
VALUES = [b"GET", b"/", b"200", b"a=b", b"text/html", b"", b"x" * 300, b"\x00\xff\r\n", b"gzip, deflate", b"!" * 40]


def make_block(random_, encoder):
    if random_.random() < 0.1:
        encoder.header_table_size = random_.choice([0, 50, 100, 4096])
    kinds = (HeaderTuple, NeverIndexedHeaderTuple)
    fields = [random_.choice(kinds)(random_.choice(NAMES), random_.choice(VALUES)) for _ in range(random_.randrange(6))]
    block = bytearray(encoder.encode(fields, huffman=random_.random() < 0.5))
    for _ in range(random_.choice([0, 0, 0, 0, 1, 2])):
        at = random_.randrange(len(block) + 1)
        change = random_.randrange(3)
        if change == 0:
            block.insert(at, random_.randrange(256))
        elif change == 1 and at < len(block):
            block[at] = random_.randrange(256)
        else:
            del block[at:at + random_.randrange(3)]
    return bytes(block)


def make_decoder():
    return Decoder(max_header_list_size=1 << 30)


def decode(decoder, block):
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
    except (HPACKDecodingError, IndexError):
        return None


def parse(line):
    if line == "malformed":
        return None, None, None
    fields, encoded = line.split(" |")
    size, *texts = fields.split(" ")
    texts = [bytes.fromhex(text) for text in texts]
    return int(size), list(zip(texts[::2], texts[1::2])), bytes.fromhex(encoded)


def main():
    program, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    random_ = random.Random(seed)
    peer = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + seconds
    blocks = malformed = 0
    while time.monotonic() < end:
        encoder, decoder, reader = Encoder(), make_decoder(), make_decoder()
        peer.stdin.write("\n")
        for _ in range(20):
            block = make_block(random_, encoder)
            if not block:
                continue
            peer.stdin.write(block.hex() + "\n")
            peer.stdin.flush()
            size, fields, encoded = parse(peer.stdout.readline().rstrip("\n"))
            expected = decode(decoder, block)
            blocks += 1
            if fields != expected or (fields is not None and size != decoder.header_table._current_size):
                sys.exit(f"{block.hex()}: {fields}, {size}, but python3-hpack: {expected}")
            if fields is None:
                malformed += 1
                break
            if decode(reader, encoded) != fields:
                sys.exit(f"{encoded.hex()} is not {fields}")
    peer.stdin.close()
    if peer.wait() != 0:
        sys.exit("the decoder has failed")
    print(f"{blocks} blocks, {malformed} of them malformed")


main()
