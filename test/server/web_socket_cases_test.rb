# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"
require "zlib"

# Every case of test/http/web_socket/cases.txt against a server that answers with what it gets, over both protocols.
class WebSocketCasesTest < Minitest::Test
  include WebSocketHelpers

  # Answers each message with itself.
  class Mirror
    def self.on_message(client, message) = client.write(message)
  end

  Case = Struct.new(:name, :sent, :expected)
  FILE = File.expand_path("../http/web_socket/cases.txt", __dir__)
  MASK = "\x37\xfa\x21\x3d".b

  # @return [Array<Case>]
  def self.cases
    @cases ||= File.readlines(FILE, chomp: true).grep_v(/\A\s*(#|\z)/).slice_before(/\A\S/).map do |name, *lines|
      sent, expected = lines.map(&:strip).partition { |line| line.start_with?(">") }
      Case.new(name, sent.sum("".b) { |line| bytes_of(line) }, expected.map { |line| line[2..].split(" ", 2) })
    end
  end

  def self.bytes_of(line)
    word, rest = line.split(" ", 2)
    return [rest.delete(" ")].pack("H*") if word == ">raw"
    return deflated_frames(Integer(word.delete_prefix(">z")), *rest.split(" ", 2)) if word.start_with?(">z")

    first, payload = rest.split(" ", 2)
    frames.frame(nil, payload(payload), first: first.hex, mask: word == ">" ? MASK : nil)
  end

  # The payload deflated (RFC 7692, section 7.2.1), in frames of so many bytes.
  def self.deflated_frames(most, first, payload)
    deflater = Zlib::Deflate.new(6, -Zlib::MAX_WBITS)
    bytes = deflater.deflate(payload(payload), Zlib::SYNC_FLUSH).delete_suffix("\0\0\xff\xff".b)
    deflater.close
    pieces = (0...bytes.bytesize).step(most).map { |at| bytes.byteslice(at, most) }
    pieces.each_with_index.sum("".b) do |piece, index|
      bits = (index.zero? ? first.hex & 0x7f : 0) | (index == pieces.size - 1 ? 0x80 : 0)
      frames.frame(nil, piece, first: bits, mask: MASK)
    end
  end

  # Hex, "text", NUMBER*HEX, or NUMBER~, joined by +.
  def self.payload(text)
    text.scan(/"([^"]*)"|(\d+)\*(\h\h)|(\d+)~|(\h+)/).sum("".b) do |plain, count, byte, letters, hex|
      next plain.b if plain
      next [byte].pack("H*") * count.to_i if count

      letters ? self.letters(letters.to_i) : [hex].pack("H*")
    end
  end

  def self.letters(count)
    state = 1
    Array.new(count) { 97 + (((state = ((state * 1_103_515_245) + 12_345) & 0xffffffff) >> 16) % 26) }.pack("C*")
  end

  def self.frames = @frames ||= WebSocketClient.allocate

  # What of the answers does not depend on how fast the handler is: messages and pongs, or the close code alone.
  def expected_of(one)
    code = one.expected.last&.then { |kind, text| text.to_i if %w[close fail].include?(kind) }
    return [code == 1005 ? nil : code] if code

    %w[text binary ping].map do |kind|
      one.expected.select { |found, _| found == kind }.map { |_, text| self.class.payload(text) }
    end + [1000]
  end

  def answers_to(one, client)
    client.raw(one.sent)
    return [client.closing.code] if %w[close fail].include?(one.expected.last&.first)

    wanted = one.expected.count { |kind, _| kind != "pong" }
    frames = Array.new(wanted) { client.read }
    client.close
    found = [1, 2, 10].map do |opcode|
      frames.select { |frame| frame.opcode == opcode }.map { |frame| content(frame) }
    end
    found + [client.closing.code]
  end

  def content(frame)
    return frame.payload if frame.rsv.zero?

    inflater = Zlib::Inflate.new(-Zlib::MAX_WBITS)
    inflater.inflate(frame.payload + "\0\0\xff\xff".b).tap { inflater.close }
  end

  # @return [Hash] fields of its request
  def fields_of(one) = one.name.match?(/\A1[23]\./) ? { sec_websocket_extensions: "permessage-deflate" } : {}

  def check(cases)
    wrong = cases.filter_map do |one|
      client = yield(fields_of(one))
      found = answers_to(one, client)
      client.io.finish if client.io.respond_to?(:finish)
      client.io.close unless client.io.respond_to?(:finish)
      "#{one.name}: #{found.inspect[0, 200]}" unless found == expected_of(one)
    end

    assert_empty wrong
  end

  def test_every_case_over_http1
    assert_operator self.class.cases.size, :>, 150
    serving(upgrading(Mirror), lint: false, websocket_deflate: true) do
      check(self.class.cases) { |fields| WebSocketClient.new(connect, **fields) }
    end
  end

  def test_every_case_over_http2
    serving(upgrading(Mirror), lint: false, http2_websockets: true, websocket_deflate: true,
                               linger_timeout: 0.5) do
      connection = H2WebSocketConnection.new(connect)
      check(self.class.cases) { |fields| H2WebSocketClient.new(connection.connect(**fields)) }
      connection.close
    end
  end

  # Larger than by default: cases 9.1 to 9.4.
  LARGE = { websocket_message_limit: 16 << 20 }.freeze

  # Of text, of bytes, and of bytes in 4,096 fragments.
  def check_large_messages(client, size)
    client.text(text = "\u00fc" * (size / 2))
    assert_same_bytes text, client
    client.binary(bytes = self.class.letters(1 << 20))
    assert_same_bytes bytes, client
    client.raw((0...4096).sum("".b) { |i| client.frame(nil, bytes.byteslice(i << 8, 1 << 8), first: first_byte(i)) })
    assert_same_bytes bytes, client
  end

  def first_byte(index) = (index.zero? ? 2 : 0) | (index == 4095 ? 0x80 : 0)

  def assert_same_bytes(sent, client)
    found = client.message

    assert_equal [sent.encoding, sent.bytesize, sent.hash], [found.encoding, found.bytesize, found.hash]
  end

  def test_a_message_of_sixteen_megabytes_and_one_of_thousands_of_fragments_over_http1
    serving(upgrading(Mirror), lint: false, **LARGE) { check_large_messages(dial, 16 << 20) }
  end

  def test_a_message_of_a_megabyte_and_one_of_thousands_of_fragments_over_http2
    serving(upgrading(Mirror), lint: false, http2_websockets: true, **LARGE) do
      connection = H2WebSocketConnection.new(connect)
      check_large_messages(H2WebSocketClient.new(connection.connect), 1 << 20)
      connection.close
    end
  end
end
