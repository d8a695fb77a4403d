"""Compares the session of Heddle with python3-h2, frame by frame: PROGRAM SEQUENCES SEED; PROGRAM is frames_peer.c.

A sequence is a connection: frames of a client, valid ones and changed ones, and what a server does between them. After
each frame both sides say what happened: requests with their fields, content, ends, and the frames that they send (but
WINDOW_UPDATE). The sequence ends where they differ. A difference without an entry in DIFFERENCES fails the run.
"""
import collections
import random
import re
import struct
import subprocess
import sys
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from h2.stream import StreamClosedBy
from hpack import Encoder
from hyperframe.frame import Frame, GoAwayFrame, PingFrame, RstStreamFrame, SettingsFrame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION,
 ALTSVC) = range(11)
PRIORITY_UPDATE = 16
END_STREAM = ACK = 1
END_HEADERS = 4
PADDED = 8
HAS_PRIORITY = 32
(NO_ERROR, PROTOCOL_ERROR, _, FLOW_CONTROL_ERROR, _, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL,
 COMPRESSION_ERROR, _, ENHANCE_YOUR_CALM) = range(12)
FRAME_SIZE = 16384
CONCURRENT = 4  # as in frames_peer.c
ON_STREAM = (DATA, HEADERS, PRIORITY, RST_STREAM, PUSH_PROMISE, CONTINUATION)
ON_CONNECTION = (SETTINGS, PING, GOAWAY)


class WireFrame(collections.namedtuple("WireFrame", "type flags stream payload")):
    def pack(self):
        size = len(self.payload)
        return struct.pack("!HBBBL", size >> 8, size & 0xff, self.type, self.flags, self.stream) + self.payload

    @property
    def id(self):
        return self.stream & 0x7fffffff


# -- what clients send -----------------------------------------------------------------------------------------------

METHODS = [b"GET", b"POST", b"HEAD", b"OPTIONS", b"CONNECT"]
ODD_METHODS = [b"get", b"G T", b""]
PATHS = [b"/", b"/a?b=c", b"/x/y"]
ODD_PATHS = [b"*", b"x", b"", b"/a b", b"http://a.example/"]
EXTRA = [(b"accept", b"*/*"), (b"cookie", b"a=b"), (b"cookie", b"c=d"), (b"x-long", b"y" * 200), (b"x-empty", b""),
         (b"te", b"trailers"), (b"under_score", b"1"), (b"priority", b"u=1, i"), (b"x-text", b"\xe4")]
ODD = [(b"X-Upper", b"1"), (b"te", b"gzip"), (b"connection", b"close"), (b"keep-alive", b"1"), (b"upgrade", b"h2c"),
       (b"proxy-connection", b"close"), (b"transfer-encoding", b"chunked"), (b"content-length", b"-1"),
       (b"content-length", b"1_0"), (b"content-length", b"+5"), (b"content-length", b"x"), (b"content-length", b"0"),
       (b"content-length", b"10"), (b"host", b"a.example"), (b"host", b"A.example"), (b"host", b"b.example"),
       (b"", b"x"), (b" x", b"y"), (b"x y", b"z"), (b"x\x00", b"y"), (b"x-null", b"a\x00b"), (b"x-line", b"a\r\nb"),
       (b"x-bell", b"\x07"), (b"x-blank", b" a"), (b"x-blank", b"a\t"), (b":status", b"200"), (b":status", b"100"),
       (b":protocol", b"websocket"), (b":other", b"1"), (b":path", b"/2"), (b":method", b"GET"), (b"x:y", b"1")]
SETTINGS_VALUES = {1: [0, 4096, 1 << 20], 2: [0, 1], 3: [0, 5], 4: [0, 65535, 1 << 20, (1 << 31) - 1],
                   5: [16384, 20000, (1 << 24) - 1], 6: [1000], 8: [0, 1], 9: [0, 1], 0xabcd: [7]}
ODD_SETTINGS_VALUES = {2: [2], 4: [1 << 31], 5: [100, 1 << 24], 8: [2], 9: [2]}


class Client:
    """Makes the commands of one sequence. It follows what a client would know of its streams, and no more."""

    def __init__(self, random_):
        self.random = random_
        self.encoder = Encoder()
        self.next_id = 1
        self.streams = []  # all of them
        self.sending = []  # whose requests are not complete
        self.waiting = []  # that have no answer
        self.oddness = random_.choice([0, 0.01, 0.05, 0.2])

    @property
    def odd(self):
        """Is the next thing wrong?"""
        return self.random.random() < self.oddness

    def either(self, even, odd):
        return self.random.choice(odd if self.odd else even)

    def sequence(self):
        random_ = self.random
        self.consumed = random_.random() < 0.5
        yield "new", self.consumed
        yield "feed", PREFACE, None
        if not self.odd:
            yield self.feed(WireFrame(SETTINGS, 0, 0, self.settings() if random_.random() < 0.5 else b""))
        for _ in range(random_.randrange(2, 30)):
            if self.waiting and (len(self.waiting) == CONCURRENT or random_.random() < 0.2):
                yield self.serve()
                continue
            for frame in self.frames():
                frame = self.change(frame) if self.odd else frame
                yield self.feed(frame)
                if frame.type == GOAWAY:
                    return

    @staticmethod
    def feed(frame):
        return "feed", frame.pack(), frame

    def serve(self):
        id = self.random.choice(self.waiting)
        self.forget(id)
        return self.random.choice(["answer", "answer", "reset"]), id

    def forget(self, id):
        self.sending = [one for one in self.sending if one != id]
        self.waiting = [one for one in self.waiting if one != id]

    def frames(self):
        makers = [self.request] * 8 + [self.data] * 6 + [self.trailers] * 2 + [self.other] * 5
        if self.odd:
            makers = [self.anything]
        return self.random.choice(makers)()

    def some_id(self, likely):
        if likely and not self.odd:
            return self.random.choice(likely)
        return self.random.choice(self.streams[-6:] + [0, 2, self.next_id, self.next_id + 2, 1])

    def end(self, id, probability):
        """Does the request end here?"""
        if self.random.random() >= probability:
            return 0
        self.sending = [one for one in self.sending if one != id]
        return END_STREAM

    def request(self):
        if len(self.waiting) >= CONCURRENT and not self.odd:
            return []
        id = self.next_id
        self.next_id += self.random.choice([2, 2, 2, 4])
        for streams in (self.streams, self.sending, self.waiting):
            streams.append(id)
        end = self.end(id, 0.4)
        length = [(b"content-length", b"10")] if not end and self.random.random() < 0.1 else []
        return self.headers(id, self.fields() + length, end)

    def fields(self):
        random_ = self.random
        fields = [(b":method", self.either(METHODS, ODD_METHODS)), (b":scheme", b"http"), (b":authority", b"a.example"),
                  (b":path", self.either(PATHS, ODD_PATHS))]
        if fields[0][1] == b"CONNECT":
            if random_.random() < 0.5:
                fields.append((b":protocol", b"websocket"))
            elif self.odd:
                del fields[3], fields[1]  # as it has to be, which python3-h2 does not know
            else:
                fields[0] = (b":method", b"PUT")
        fields += random_.sample(EXTRA, random_.randrange(4))
        if self.odd:
            change = random_.choice([0, 1, 2, 3, 3, 3])
            if change == 0:
                del fields[random_.randrange(len(fields))]
            elif change == 1:
                random_.shuffle(fields)
            elif change == 2:
                fields.append(random_.choice(fields))
            else:
                fields.insert(random_.choice([4, len(fields)]), random_.choice(ODD))
        return fields

    def receivers(self):
        """Streams whose requests go on; now and then others, too."""
        return self.streams if self.oddness and self.random.random() < 0.1 else self.sending

    def trailers(self):
        if not self.sending and not self.odd:
            return []
        fields = self.random.sample(EXTRA, self.random.randrange(1, 3))
        if self.odd:
            fields.append(self.random.choice(ODD))
        id = self.some_id(self.receivers())
        return self.headers(id, fields, self.end(id, 0 if self.odd else 1))

    def headers(self, id, fields, flags):
        """One header block, in up to seven frames."""
        random_ = self.random
        block = bytearray(self.encoder.encode(fields, huffman=random_.random() < 0.7))
        if self.odd:
            block[random_.randrange(len(block))] = random_.randrange(256)
        cuts = sorted(random_.randrange(len(block) + 1) for _ in range(self.either([0] * 6 + [1, 2, 4], [5, 6])))
        pieces = [bytes(block[a:b]) for a, b in zip([0] + cuts, cuts + [len(block)])]
        payload = pieces[0]
        if random_.random() < 0.15:
            flags |= HAS_PRIORITY
            payload = struct.pack("!LB", self.either([0, 0x80000000, id + 2], [id]), 15) + payload
        if random_.random() < 0.15:
            flags |= PADDED
            payload = self.pad(payload)
        frames = [WireFrame(HEADERS, flags, id, payload)]
        frames += [WireFrame(CONTINUATION, 0, id, piece) for piece in pieces[1:]]
        frames[-1] = frames[-1]._replace(flags=frames[-1].flags | END_HEADERS)
        return frames

    def pad(self, payload):
        size = self.random.choice([0, 1, 5, 100])
        said = self.either([size], [size + len(payload), size + len(payload) + 1, 255])
        return bytes([min(said, 255)]) + payload + bytes(size)

    def data(self):
        if not self.sending and not self.odd:
            return []
        id = self.some_id(self.receivers())
        large = [b"x" * FRAME_SIZE] * (1 if self.consumed else 4)
        payload = self.random.choice([b"", b"12345", b"1234567890", b"x" * 1000] + large)
        flags = self.end(id, 0.3)
        if self.random.random() < 0.15:
            flags |= PADDED
            payload = self.pad(payload[:FRAME_SIZE - 101])
        return [WireFrame(DATA, flags, id, payload)]

    def settings(self):
        entries = []
        for _ in range(self.random.randrange(4)):
            values = ODD_SETTINGS_VALUES if self.odd else SETTINGS_VALUES
            id = self.random.choice(list(values))
            entries.append(struct.pack("!HL", id, self.random.choice(values[id])))
        return b"".join(entries)

    def other(self):
        random_ = self.random
        type_ = self.either([PRIORITY, RST_STREAM, SETTINGS, PING, PING, WINDOW_UPDATE, WINDOW_UPDATE, 0xbe],
                            [PUSH_PROMISE, GOAWAY, CONTINUATION, ALTSVC, PRIORITY_UPDATE])
        id = 0 if type_ in ON_CONNECTION or type_ == PRIORITY_UPDATE else self.some_id(self.streams)
        if type_ == WINDOW_UPDATE and random_.random() < 0.4:
            id = 0
        if type_ == RST_STREAM:
            self.forget(id)
        flags = random_.choice([0, ACK]) if type_ in (SETTINGS, PING) else 0
        odd_numbers = [0, (1 << 31) - 1, 1 << 31, random_.getrandbits(32)]
        number = struct.pack("!L", self.either([1, 8, 1000, 65535], odd_numbers))
        payload = {
            PRIORITY: struct.pack("!LB", self.either([0, id + 2], [id]), 1), RST_STREAM: number,
            SETTINGS: b"" if flags else self.settings(), PUSH_PROMISE: struct.pack("!L", 2), PING: b"12345678",
            GOAWAY: struct.pack("!LL", 0, 0), WINDOW_UPDATE: number, CONTINUATION: b"", ALTSVC: b"\x00\x00h3",
            PRIORITY_UPDATE: struct.pack("!L", self.some_id(self.streams)) + b"u=2", 0xbe: b"any",
        }[type_]
        return [WireFrame(type_, flags, id, payload)]

    def anything(self):
        size = self.random.choice([0, 1, 3, 4, 5, 6, 8, 9, 20])
        return [WireFrame(self.random.randrange(18), self.random.randrange(256), self.some_id(self.streams),
                          self.random.randbytes(size))]

    def change(self, frame):
        """One thing about the frame is wrong, perhaps."""
        change = self.random.randrange(6)
        if change == 0:
            return frame._replace(type=self.random.randrange(11))
        if change == 1:
            return frame._replace(flags=frame.flags ^ 1 << self.random.randrange(8))
        if change == 2:
            return frame._replace(stream=self.some_id([]) | self.random.choice([0, 1 << 31]))
        if change == 3:
            return frame._replace(payload=frame.payload[:self.random.randrange(len(frame.payload) + 1)])
        if change == 4:
            return frame._replace(payload=frame.payload + bytes(self.random.choice([1, 1, FRAME_SIZE])))
        at = self.random.randrange(len(frame.payload) + 1)
        return frame._replace(payload=frame.payload[:at] + self.random.randbytes(1) + frame.payload[at + 1:])


# -- the two servers -------------------------------------------------------------------------------------------------

def line_of(name, what, _frame=None):
    """A command as frames_peer.c reads it."""
    return f"{name} {what.hex() if isinstance(what, bytes) else int(what)}\n"


class Ours:
    """frames_peer.c, which gets all commands of a sequence at once."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, commands):
        # In a thread: neither side reads while its own pipe is full.
        writer = threading.Thread(target=self.send, args=(commands,))
        writer.start()
        answers = [self.process.stdout.readline() for _ in commands]
        writer.join()
        if not answers[-1]:
            sys.exit("the session has failed")
        return [answer.split() for answer in answers]

    def send(self, commands):
        try:
            self.process.stdin.write("".join(line_of(*command) for command in commands))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has failed, which the reader sees

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("the session has failed")


class Theirs:
    """A connection of python3-h2, with the same limits."""

    def __init__(self, consumes):
        self.consumes = consumes
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None, normalize_inbound_headers=False))
        self.connection.local_settings = h2.settings.Settings(client=False, initial_values={
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: CONCURRENT,
            h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        self.connection.initiate_connection()
        self.connection.data_to_send()
        self.fields = None
        self.exception = None

    def feed(self, bytes_):
        self.exception = None
        try:
            events = self.connection.receive_data(bytes_)
        except h2.exceptions.ProtocolError as exception:
            self.exception = exception
            events = []
        words = [word for event in events for word in self.words_of(event)]
        return words + self.output()

    def words_of(self, event):
        id = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            self.fields = [tuple(field) for field in event.headers]
            yield f"request:{id}:{request_words(self.fields)}"
        elif isinstance(event, h2.events.TrailersReceived):
            self.fields = [tuple(field) for field in event.headers]
        elif isinstance(event, h2.events.DataReceived):
            if event.data:
                yield f"data:{id}:{event.data.hex()}"
            if self.consumes and event.flow_controlled_length:
                self.connection.acknowledge_received_data(event.flow_controlled_length, id)
        elif isinstance(event, h2.events.StreamEnded):
            yield f"end:{id}"
        elif isinstance(event, h2.events.StreamReset) and event.remote_reset:
            yield f"gone:{id}:{int(event.error_code)}"

    def output(self):
        bytes_ = self.connection.data_to_send()
        words = []
        while bytes_:
            frame, size = Frame.parse_frame_header(memoryview(bytes_[:9]))
            frame.parse_body(memoryview(bytes_[9:9 + size]))
            bytes_ = bytes_[9 + size:]
            if isinstance(frame, RstStreamFrame):
                words.append(f"reset:{frame.stream_id}:{frame.error_code}")
            elif isinstance(frame, GoAwayFrame):
                words.append(f"error:{int(frame.error_code)}")
            elif isinstance(frame, PingFrame):
                words.append(f"pong:{frame.opaque_data.hex()}")
            elif isinstance(frame, SettingsFrame) and "ACK" in frame.flags:
                words.append("acknowledged")
        return words

    def answer(self, id):
        """As Heddle: a client whose request is not complete may save the rest of it (RFC 9113, 8.1)."""
        stream = self.connection.streams.get(id)
        if not stream or not stream.open or stream.state_machine.headers_sent:
            return []
        whole = stream.state_machine.state.name == "HALF_CLOSED_REMOTE"
        self.connection.send_headers(id, [(":status", "200")], end_stream=True)
        if not whole:
            self.connection.reset_stream(id, NO_ERROR)
        return self.output()

    def reset(self, id):
        stream = self.connection.streams.get(id)
        if stream and stream.open:
            self.connection.reset_stream(id, CANCEL)
        return self.output()

    def state(self, id):
        """idle, open, half-closed, ended, reset-by-us, reset-by-them, or skipped."""
        stream = self.connection.streams.get(id)
        if stream and stream.open:
            return "half-closed" if stream.state_machine.state.name == "HALF_CLOSED_REMOTE" else "open"
        if id % 2 == 0 or id > self.connection.highest_inbound_stream_id:
            return "idle"
        return {StreamClosedBy.SEND_END_STREAM: "ended", StreamClosedBy.RECV_END_STREAM: "ended",
                StreamClosedBy.SEND_RST_STREAM: "reset-by-us", StreamClosedBy.RECV_RST_STREAM: "reset-by-them",
                None: "skipped"}[self.connection._stream_closed_by(id)]

    @property
    def in_block(self):
        return bool(self.connection.incoming_buffer._headers_buffer)


def request_words(fields):
    """As frames_peer.c prints them: Heddle joins cookies (RFC 9113, 8.2.3), and tells Host also of :authority."""
    pseudo = {name: value for name, value in fields if name.startswith(b":")}
    regular = [[name, value] for name, value in fields if not name.startswith(b":")]
    if not any(name == b"host" for name, _ in regular):
        regular.append([b"host", pseudo.get(b":authority", b"")])
    cookies = [field for field in regular if field[0] == b"cookie"]
    for crumb in cookies[1:]:
        cookies[0][1] += b"; " + crumb[1]
    regular = [field for field in regular if field[0] != b"cookie" or field is cookies[0]]
    target = pseudo.get(b":path", pseudo.get(b":authority", b""))
    return ":".join([pseudo.get(b":method", b"").hex(), target.hex()] +
                    [f"{name.hex()}={value.hex()}" for name, value in regular])


# -- differences -----------------------------------------------------------------------------------------------------

class Step:
    """A frame, the state of its stream before it, and what both have made of it."""

    def __init__(self, frame, theirs):
        self.frame = frame
        self.type = frame.type
        self.theirs_connection = theirs
        self.in_block = theirs.in_block
        self.state = theirs.state(frame.id)
        self.content_length = self.length_left(theirs, frame.id)
        self.is_first = theirs.is_first

    @staticmethod
    def length_left(theirs, id):
        stream = theirs.connection.streams.get(id)
        if not stream or stream._expected_content_length is None:
            return 0
        return stream._expected_content_length - stream._actual_content_length

    def compare(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        self.exception = self.theirs_connection.exception
        self.our_error, self.their_error = error_of(ours), error_of(theirs)
        if self.our_error is not None or self.their_error is not None:
            return self.our_error == self.their_error
        return ours == theirs

    def we_reset(self, *codes):
        return self.ours in [[f"reset:{self.frame.id}:{code}"] for code in codes]

    def they_reset(self, *codes):
        return self.theirs in [[f"reset:{self.frame.id}:{code}"] for code in codes]

    @property
    def ends_block(self):
        return self.type in (HEADERS, CONTINUATION) and self.frame.flags & END_HEADERS

    def says(self, text):
        return self.exception is not None and text in str(self.exception)


def error_of(words):
    return next((int(word.split(":")[1]) for word in words if word.startswith("error:")), None)


def broken_field_rule(fields):
    """Which rule for a single field that python3-h2 does not know these break."""
    for name, value in fields:
        if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            return "a control character in a value (9113, 8.2.1)"
        if not name.startswith(b":") and not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9a-z-]+", name):
            return "a name that is no token (9113, 8.2.1)"
    return None


def broken_request_rule(fields, ended):
    """The same for the fields of a request together."""
    pseudo = {name: value for name, value in fields if name.startswith(b":")}
    method, path = pseudo.get(b":method", b""), pseudo.get(b":path")
    if not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", method):
        return "a method that is no token (9110, 9.1)"
    if method == b"CONNECT" and b":protocol" not in pseudo and path is not None:
        return "CONNECT with :path (9113, 8.5)"
    if not re.fullmatch(rb"[A-Za-z][A-Za-z0-9+.-]*", pseudo.get(b":scheme", b"http")):
        return "a scheme that is none (3986, 3.1)"
    if path is not None and (path == b"*") != (method == b"OPTIONS" and path == b"*"):
        return "* as :path of another method than OPTIONS (9113, 8.3.1)"
    if path is not None and path != b"*" and not re.fullmatch(rb"/[\x21\x22\x24-\x7e]*", path):
        return "a :path that is none (9113, 8.3.1)"
    hosts = [value for name, value in fields if name == b"host"]
    if len(hosts) > 1:
        return "two Host fields (9110, 7.2)"
    if not re.fullmatch(rb"[A-Za-z0-9.-]+(:\d+)?", pseudo.get(b":authority", hosts[0] if hosts else b"")):
        return "an authority that is none (9113, 8.3.1)"
    if b":protocol" in pseudo and (not pseudo[b":protocol"] or b":authority" not in pseudo):
        return ":protocol without a name or :authority (8441, 4)"
    lengths = {value for name, value in fields if name == b"content-length"}
    if len(lengths) > 1 or any(not value.isdigit() for value in lengths):
        return "a content-length that is no number, or two (9110, 8.6)"
    if ended and any(int(value) > 0 for value in lengths):
        return "a content-length where END_STREAM says that there is no content (9113, 8.1.1)"
    return None


def breaks_unknown_rule(step):
    if not step.ends_block or not step.we_reset(PROTOCOL_ERROR) or step.their_error is not None:
        return False
    fields = step.theirs_connection.fields
    request, ended = (any(word.startswith(kind) for word in step.theirs) for kind in ("request:", "end:"))
    return bool(broken_field_rule(fields) or (request and broken_request_rule(fields, ended)))


def breaks_unfounded_rule(step):
    """python3-h2 wants :path and :scheme of CONNECT, compares Host with :authority by case, and int() reads lengths."""
    return (step.ends_block and step.their_error == PROTOCOL_ERROR
            and any(word.startswith("request:") for word in step.ours)
            and (step.says("missing mandatory") and b"CONNECT".hex() in step.ours[0] or step.says("mismatched")))


def has_duplicate_setting(step):
    payload = step.frame.payload
    ids = [payload[at:at + 2] for at in range(0, len(payload), 6)]
    return len(ids) > len(set(ids))


def misplaced(frame):
    return (frame.type in ON_STREAM and frame.id == 0) or (frame.type in ON_CONNECTION and frame.id != 0)


# Which side is stricter, or uses another code: a name with the reason, and whether a step is one of these.
DIFFERENCES = [
    ("a malformed request or trailers are an error of the stream (9113, 8.1.1); python3-h2 ends the connection",
     lambda s: s.ends_block and s.we_reset(PROTOCOL_ERROR) and s.their_error == PROTOCOL_ERROR
     and not s.says("decoding")),
    ("so is DATA that contradicts content-length (9113, 8.1.1)",
     lambda s: s.type == DATA and s.ours[-1:] == [f"reset:{s.frame.id}:{PROTOCOL_ERROR}"]
     and isinstance(s.exception, h2.exceptions.InvalidBodyLengthError)),
    ("python3-h2 does not compare content-length where trailers end the request (9113, 8.1.1)",
     lambda s: s.ends_block and s.state == "open" and s.we_reset(PROTOCOL_ERROR) and s.content_length > 0
     and s.theirs == [f"end:{s.frame.id}"]),
    ("python3-h2 takes a content-length in trailers for that of the content",
     lambda s: s.ends_block and s.state == "open" and s.ours == [f"end:{s.frame.id}"] and s.says("content-length")),
    ("python3-h2 does not know a rule for fields", breaks_unknown_rule),
    ("python3-h2 has a rule for fields that HTTP does not have", breaks_unfounded_rule),
    ("a stream beyond SETTINGS_MAX_CONCURRENT_STREAMS is refused (9113, 5.1.2); python3-h2 ends the connection",
     lambda s: isinstance(s.exception, h2.exceptions.TooManyStreamsError) and s.state == "idle"
     and s.we_reset(REFUSED_STREAM, PROTOCOL_ERROR)),
    ("python3-h2 counts streams before it looks at what was sent, on a closed stream or malformed",
     lambda s: isinstance(s.exception, h2.exceptions.TooManyStreamsError)
     and (s.state not in ("idle", "open", "half-closed") or s.our_error == COMPRESSION_ERROR)),
    ("HEADERS where none can be end the connection at once; python3-h2 waits for the end of the block",
     lambda s: s.type == HEADERS and not s.ends_block and s.state in ("idle", "ended", "skipped")
     and s.our_error in (PROTOCOL_ERROR, STREAM_CLOSED) and not s.theirs),
    ("HEADERS may be nothing but padding (9113, 6.2); python3-h2 wants a byte more",
     lambda s: s.type == HEADERS and s.frame.flags & PADDED and s.says("padding")
     and s.frame.payload[0] <= len(s.frame.payload) - 1 and s.our_error in (None, STREAM_CLOSED)),
    ("DATA that nobody wants, with too much padding: python3-h2 looks at the padding first",
     lambda s: s.type == DATA and s.state != "open" and s.says("padding")
     and (not s.ours or s.we_reset(STREAM_CLOSED) or s.our_error == STREAM_CLOSED)),
    ("HPACK: COMPRESSION_ERROR (9113, 4.3); python3-h2 says PROTOCOL_ERROR",
     lambda s: s.ends_block and s.our_error == COMPRESSION_ERROR and s.their_error == PROTOCOL_ERROR
     and s.says("decoding")),
    ("python3-h2 adds up the sizes of fields before it finds that the block can't be decoded",
     lambda s: s.ends_block and s.our_error == COMPRESSION_ERROR and s.says("Oversized header block")),
    ("PRIORITY on itself is an error of the stream (7540, 5.3.1); python3-h2 ends the connection",
     lambda s: s.type == PRIORITY and s.we_reset(PROTOCOL_ERROR) and s.says("depend on itself")),
    ("the priority of trailers is not looked at (9113, 5.3.2)",
     lambda s: s.ends_block and s.state == "open" and s.our_error is None and s.says("depend on itself")),
    ("PRIORITY of a wrong size is an error of the stream (9113, 6.3); python3-h2 ends the connection",
     lambda s: s.type == PRIORITY and len(s.frame.payload) != 5 and s.we_reset(FRAME_SIZE_ERROR)
     and s.their_error == FRAME_SIZE_ERROR),
    ("a WINDOW_UPDATE of 0 is an error of the stream (9113, 6.9), nothing on a closed one; python3-h2 ends the connection",
     lambda s: s.type == WINDOW_UPDATE and s.frame.id > 0 and int.from_bytes(s.frame.payload, "big") & 0x7fffffff == 0
     and (s.we_reset(PROTOCOL_ERROR) or not s.ours) and s.their_error == PROTOCOL_ERROR),
    ("the reserved bit of WINDOW_UPDATE is ignored (9113, 6.9); python3-h2 ends the connection",
     lambda s: s.type == WINDOW_UPDATE and len(s.frame.payload) == 4 and s.frame.payload[0] & 0x80
     and s.says("non-compliant")),
    ("SETTINGS with ACK and a payload: FRAME_SIZE_ERROR (9113, 6.5); python3-h2 says PROTOCOL_ERROR",
     lambda s: s.type == SETTINGS and s.frame.flags & ACK and s.our_error == FRAME_SIZE_ERROR
     and s.their_error == PROTOCOL_ERROR),
    ("SETTINGS_NO_RFC7540_PRIORITIES is 0 or 1 (9218, 2.1); python3-h2 does not know it",
     lambda s: s.type == SETTINGS and s.our_error == PROTOCOL_ERROR and s.their_error is None
     and any(struct.unpack("!HL", s.frame.payload[at:at + 6]) > (9, 1)
             and s.frame.payload[at:at + 2] == b"\x00\x09" for at in range(0, len(s.frame.payload), 6))),
    ("of a setting that comes twice in a frame python3-h2 looks at the last only (9113, 6.5.3: in order)",
     lambda s: s.type == SETTINGS and has_duplicate_setting(s) and s.our_error is not None),
    ("python3-h2 counts the windows of streams that have ended, too (9113, 6.9.2)",
     lambda s: s.type == SETTINGS and s.ours == ["acknowledged"] and s.their_error == FLOW_CONTROL_ERROR
     and any(stream.closed for stream in s.theirs_connection.connection.streams.values())),
    ("of several wrong settings python3-h2 says the one with the smallest number first",
     lambda s: s.type == SETTINGS and len(s.frame.payload) > 6
     and sorted([s.our_error or 0, s.their_error or 0]) == [PROTOCOL_ERROR, FLOW_CONTROL_ERROR]),
    ("DATA behind END_STREAM on a closed stream ends the connection (9113, 5.1); python3-h2 resets the stream",
     lambda s: s.type == DATA and s.state == "ended" and s.our_error == STREAM_CLOSED and s.they_reset(STREAM_CLOSED)),
    ("frames on a stream that the server has reset are ignored (9113, 5.1); python3-h2 resets it again",
     lambda s: s.type in (DATA, HEADERS, CONTINUATION) and s.state == "reset-by-us" and not s.ours
     and s.they_reset(STREAM_CLOSED)),
    ("frames on a stream that has been answered with a reset are ignored; python3-h2 resets it again",
     lambda s: s.type in (DATA, HEADERS, CONTINUATION) and s.state in ("reset-by-them", "skipped") and not s.ours
     and s.they_reset(STREAM_CLOSED)),
    ("CONTINUATION without HEADERS: PROTOCOL_ERROR (9113, 6.10); python3-h2 asks for the stream's state first",
     lambda s: s.type == CONTINUATION and not s.in_block and s.our_error == PROTOCOL_ERROR),
    ("RST_STREAM on an idle stream ends the connection (9113, 6.4); python3-h2 ignores it",
     lambda s: s.type == RST_STREAM and s.state == "idle" and s.our_error == PROTOCOL_ERROR and not s.theirs),
    ("the first frame is SETTINGS (9113, 3.4); python3-h2 takes others",
     lambda s: s.is_first and (s.type != SETTINGS or s.frame.flags & ACK)
     and s.our_error in (PROTOCOL_ERROR, FRAME_SIZE_ERROR)),
    ("PRIORITY_UPDATE is checked (9218, 7.1); python3-h2 does not know it",
     lambda s: s.type == PRIORITY_UPDATE and s.our_error in (PROTOCOL_ERROR, FRAME_SIZE_ERROR) and s.their_error is None),
    ("ALTSVC means nothing to a server (7838, 4); python3-h2 checks its size",
     lambda s: s.type == ALTSVC and not s.ours and s.their_error == FRAME_SIZE_ERROR),
    ("PUSH_PROMISE ends the connection at once (9113, 8.4); python3-h2 reads it and waits for its block",
     lambda s: s.type == PUSH_PROMISE and s.our_error == PROTOCOL_ERROR
     and (not s.theirs or s.their_error == FRAME_SIZE_ERROR)),
    ("more DATA than a stream's window is an error of the stream (9113, 6.9.1); python3-h2 ends the connection",
     lambda s: s.type == DATA and s.we_reset(FLOW_CONTROL_ERROR) and s.their_error == FLOW_CONTROL_ERROR),
    ("python3-h2 does not give back the connection's window when a stream with content ends",
     lambda s: s.type == DATA and not s.theirs_connection.consumes and s.our_error is None
     and s.their_error == FLOW_CONTROL_ERROR),
    ("more fields than header_limit and header_count: a limit of Heddle (docs/http2.md)",
     lambda s: s.ends_block and s.ours[:1] == [f"rejection:{s.frame.id}:431"]),
    ("more than four CONTINUATION frames: a limit of Heddle (docs/http2.md)",
     lambda s: s.type == CONTINUATION and s.in_block and s.our_error == ENHANCE_YOUR_CALM),
    ("another frame within a header block: PROTOCOL_ERROR (9113, 4.3); python3-h2 reads the frame first",
     lambda s: s.in_block and s.our_error == PROTOCOL_ERROR and s.their_error is not None),
    ("a frame of a wrong size in a wrong place: either may be said",
     lambda s: (len(s.frame.payload) > FRAME_SIZE or s.in_block or misplaced(s.frame) or s.state in ("idle", "ended"))
     and sorted([s.our_error or 0, s.their_error or 0]) in ([PROTOCOL_ERROR, FRAME_SIZE_ERROR],
                                                            [STREAM_CLOSED, FRAME_SIZE_ERROR])),
    ("HEADERS that can't be read, on a stream that has ended: either may be said",
     lambda s: s.type == HEADERS and s.state == "ended" and s.our_error == STREAM_CLOSED
     and (s.says("decoding") or s.says("padding"))),
]


def describe(commands, index, step):
    return "".join([*(line_of(*command) for command in commands[:index + 1]),
                    f"the stream is {step.state}, ours: {step.ours}\npython3-h2: {step.theirs} {step.exception!r}"])


def compare_sequence(commands, answers):
    """How many frames were compared, and the index of the difference that ends the sequence, or None."""
    theirs = Theirs(commands[0][1])
    frames = 0
    for index, (command, ours) in enumerate(zip(commands, answers)):
        name, what, *rest = command
        if name == "new":
            continue
        if name != "feed":
            expected = getattr(theirs, name)(what)
            if ours != expected:
                sys.exit(f"{commands[:index + 1]}: {ours}, but python3-h2: {expected}")
            continue
        if rest[0] is None:
            theirs.feed(what)
            theirs.is_first = True
            continue
        frames += 1
        step = Step(rest[0], theirs)
        theirs.is_first = False
        if step.compare(ours, theirs.feed(what)):
            if step.our_error is not None:
                return frames, "both end the connection"
            continue
        for reason, applies in DIFFERENCES:
            if applies(step):
                return frames, reason
        sys.exit(f"an unexplained difference:\n{describe(commands, index, step)}")
    return frames, None


def main():
    program, sequences, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random_ = random.Random(seed)
    ours = Ours(program)
    frames = 0
    reasons = collections.Counter()
    for _ in range(sequences):
        commands = list(Client(random_).sequence())
        count, reason = compare_sequence(commands, ours.run(commands))
        frames += count
        reasons[reason or "no difference to the end"] += 1
    ours.close()
    print(f"{sequences} sequences, {frames} frames")
    for reason, count in reasons.most_common():
        print(f"{count:7}  {reason}")


main()
