# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"

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

    first, payload = rest.split(" ", 2)
    frames.frame(nil, payload(payload), first: first.hex, mask: word == ">" ? MASK : nil)
  end

  # Hex, "text", or NUMBER*HEX, joined by +.
  def self.payload(text)
    text.scan(/"([^"]*)"|(\d+)\*(\h\h)|(\h+)/).sum("".b) do |plain, count, byte, hex|
      plain&.b || (count ? [byte].pack("H*") * count.to_i : [hex].pack("H*"))
    end
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
    [1, 2, 10].map { |opcode| frames.select { |frame| frame.opcode == opcode }.map(&:payload) } + [client.closing.code]
  end

  def check(cases)
    wrong = cases.filter_map do |one|
      client = yield
      found = answers_to(one, client)
      client.io.finish if client.io.respond_to?(:finish)
      client.io.close unless client.io.respond_to?(:finish)
      "#{one.name}: #{found.inspect[0, 200]}" unless found == expected_of(one)
    end

    assert_empty wrong
  end

  def test_every_case_over_http1
    assert_operator self.class.cases.size, :>, 150
    serving(upgrading(Mirror), lint: false) { check(self.class.cases) { WebSocketClient.new(connect) } }
  end

  def test_every_case_over_http2
    serving(upgrading(Mirror), lint: false, http2_websockets: true, linger_timeout: 0.5) do
      connection = H2WebSocketConnection.new(connect)
      check(self.class.cases) { H2WebSocketClient.new(connection.connect) }
      connection.close
    end
  end
end
