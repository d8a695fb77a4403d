# frozen_string_literal: true

require "test_helper"
require "heddle/http"

class DecoderTest < Minitest::Test
  include Heddle::HTTP

  def chunked(**limits) = H1::ChunkedDecoder.new(Limits.new(**limits))

  # The client decodes responses with it, too.
  def test_a_control_character_in_a_trailer_is_not_said_to_be_in_the_head_of_a_request
    decoder = chunked
    decoder.decode("0\r\na: \x01\r\n\r\n".b, 0, +"")

    assert_equal "a line of the head or of the trailers has control characters", decoder.rejection.reason
  end

  # Decodes pieces as they would come from a connection. Gives what was decoded, the decoder and what is left over.
  def feed(decoder, pieces)
    buffer = "".b
    position = 0
    output = "".b
    pieces.each do |piece|
      buffer << piece.b
      position = decoder.decode(buffer, position, output)
      break if decoder.rejection
    end
    [output, decoder, buffer.byteslice(position, buffer.bytesize)]
  end

  # Feeds the bytes whole, byte by byte and cut once everywhere; all must agree.
  def decode(bytes, **limits)
    whole = feed(chunked(**limits), [bytes])
    ways = [bytes.b.each_char.to_a]
    if bytes.bytesize < 500
      (1...bytes.bytesize).each do |cut|
        ways << [bytes.byteslice(0, cut), bytes.byteslice(cut, bytes.bytesize)]
      end
    end

    ways.each { |way| assert_same(whole, feed(chunked(**limits), way), bytes) }
    whole
  end

  def assert_same(whole, other, bytes)
    assert_equal whole[1].rejection&.status.to_i, other[1].rejection&.status.to_i, bytes.inspect
    return if whole[1].rejection

    assert_equal [whole[0], whole[1].done?, whole[2]], [other[0], other[1].done?, other[2]], bytes.inspect
  end

  def test_chunks_are_joined_and_what_follows_is_left_alone
    output, decoder, rest = decode("5\r\nhello\r\n1\r\n \r\n00000A\r\nworld\r\n123\r\n0\r\n\r\nGET /")

    assert_equal ["hello world\r\n123", "GET /"], [output, rest]
    assert_predicate decoder, :done?
  end

  def test_an_empty_body
    output, decoder, = decode("0\r\n\r\n")

    assert_equal "", output
    assert_predicate decoder, :done?
  end

  def test_sizes_in_both_cases_and_up_to_sixteen_digits
    output, = decode("0000000000000002\r\nab\r\na\r\n0123456789\r\nB\r\n0123456789a\r\n000\r\n\r\n")

    assert_equal "ab01234567890123456789a", output
  end

  def test_malformed_chunks_are_bad_requests
    ["g\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", "1 \r\na\r\n", " 1\r\na\r\n", "\r\n", ";a\r\n", "1\na\r\n",
     "1\r\r\n",
     "1\r\na\n", "1\r\nab\r\n", "1\r\na\r\r\n", "1\r\na\rb", "1\r\na0\r\n\r\n", "00000000000000001\r\na\r\n",
     "1;a\nb\r\n",
     "1;a\0\r\n", "1;a\rb\r\n", "1,\r\n", "1_0\r\n", "\u{ff11}\r\n"].each do |bytes|
      _, decoder, = decode(bytes)

      assert_equal 400, decoder.rejection&.status, bytes.inspect
    end
  end

  def test_extensions_are_ignored
    output, decoder, = decode("1;a=b;c=\"d;\xFF\"\r\nx\r\n1 ; a\r\ny\r\n0;z\r\n\r\n")

    assert_equal "xy", output
    assert_predicate decoder, :done?
  end

  def test_extensions_beyond_four_kib_a_body_are_refused
    fits = ["1;#{"a" * 2_047}\r\nx\r\n"] * 2
    _, decoder, = feed(chunked, fits)

    assert_nil decoder.rejection
    _, decoder, = feed(chunked, [*fits, "1;\r\nx\r\n"])

    assert_equal 400, decoder.rejection.status
    _, decoder, = feed(chunked, ["1;#{"a" * 5_000}"])

    assert_equal 400, decoder.rejection.status, "an endless extension"
  end

  def test_a_body_with_more_framing_than_data_is_rejected
    _, decoder, = feed(chunked, ["1\r\nx\r\n" * 4_000])

    assert_nil decoder.rejection
    _, decoder, = feed(chunked, ["1\r\nx\r\n" * 5_000])

    assert_equal 400, decoder.rejection.status
    assert_match(/too much chunk framing/, decoder.rejection.reason)
    _, decoder, = feed(chunked, ["64\r\n#{"x" * 100}\r\n" * 5_000])

    assert_nil decoder.rejection
  end

  def test_a_chunked_body_above_the_limit_is_too_large
    output, decoder, = decode("3\r\nabc\r\n3\r\ndef\r\n", body_limit: 5)

    assert_equal ["abc", 413], [output, decoder.rejection.status]
    _, decoder, = decode("ffffffffffffffff\r\n")

    assert_equal 413, decoder.rejection.status
  end

  def test_trailers_are_read_and_thrown_away
    output, decoder, rest = decode("1\r\nx\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\nmore")

    assert_equal %w[x more], [output, rest]
    assert_predicate decoder, :done?
  end

  def test_malformed_trailers_are_bad_requests
    ["A\r\n\r\n", "A : b\r\n\r\n", " A: b\r\n\r\n", "A: b\r\n c\r\n\r\n", "A: b\nB: c\r\n\r\n", "A: \0\r\n\r\n",
     "\n"].each do |trailers|
      _, decoder, = decode("0\r\n#{trailers}")

      assert_equal 400, decoder.rejection&.status, trailers.inspect
    end
  end

  def test_endless_trailers_are_too_large
    _, decoder, = feed(chunked, ["0\r\n", "a" * 40_000])

    assert_equal 431, decoder.rejection.status
  end
end
