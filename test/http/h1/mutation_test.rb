# frozen_string_literal: true

# test: sanitize

require "test_helper"
require_relative "parsing_helpers"

# Messages that are broken at random: whatever comes, a parser gives one result, the same however the bytes are cut, and
# never raises. `SEED=1234` repeats a run.
class MutationTest < Minitest::Test
  include ParsingHelpers

  SEEDS = [
    "GET /a?b=c HTTP/1.1\r\nHost: a:80\r\nAccept: */*\r\nConnection: keep-alive, upgrade\r\nUpgrade: x\r\n\r\n",
    "POST http://[::1]:80/ HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n",
    "PUT /x HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n",
    "OPTIONS * HTTP/1.0\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
  ].freeze
  BODIES = ["5\r\nhello\r\n0\r\n\r\n", "1;a=b\r\nx\r\n00A\r\n0123456789\r\n0;c\r\nT: v\r\n\r\n"].freeze
  BYTES = ["\r", "\n", "\r\n", "\0", " ", "\t", ":", ",", ";", "#", "/", "\xFF", "0", "9", "a", "_", "[", "]",
           "\x7F"].map(&:b)
  ROUNDS = 400

  def setup
    seed = ENV.fetch("SEED", 20_261_121).to_i
    @random = Random.new(seed)
  end

  def mutate(bytes)
    bytes = bytes.b
    @random.rand(1..3).times do
      at = @random.rand(bytes.bytesize)
      case @random.rand(4)
      when 0 then bytes.insert(at, BYTES.sample(random: @random))
      when 1 then bytes.slice!(at, @random.rand(1..4))
      when 2 then bytes[at] = @random.rand(256).chr
      else bytes.insert(at, bytes.byteslice(@random.rand(bytes.bytesize), 12))
      end
      return bytes << "x" if bytes.empty?
    end
    bytes
  end

  def test_heads
    refused = 0
    ROUNDS.times do
      bytes = mutate(SEEDS.sample(random: @random))
      result = parse(bytes)
      refused += 1 if result.is_a?(Heddle::HTTP::Rejection)
      next unless result.is_a?(H1::RequestHead)

      refute_match(/\0|[^\r]\n|\r[^\n]/n, bytes.byteslice(0, result.ending), "a stray byte was accepted")
    end

    assert_operator refused, :>, ROUNDS / 5
  end

  def test_chunked_bodies
    ROUNDS.times do
      bytes = mutate(BODIES.sample(random: @random))
      whole = decode([bytes])
      @random.rand(2..5).times do
        cut = @random.rand(bytes.bytesize)

        assert_equal whole, decode([bytes.byteslice(0, cut), bytes.byteslice(cut, bytes.bytesize)]), bytes.inspect
      end
      assert_equal whole, decode(bytes.chars), bytes.inspect
    end
  end

  def decode(pieces)
    decoder = H1::ChunkedDecoder.new(Limits.new)
    buffer = "".b
    output = "".b
    position = 0
    pieces.each do |piece|
      buffer << piece
      position = decoder.decode(buffer, position, output)
      return decoder.rejection.status if decoder.rejection
    end
    [output, decoder.done?, decoder.done? && buffer.byteslice(position, buffer.bytesize)]
  end
end
