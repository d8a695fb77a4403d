# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/http"
require_relative "support/head_parsers"

# The objects behind the parsers: whenever the collector runs, moves things or throws them away.
class ParserMemoryTest < Minitest::Test
  include Heddle::HTTP

  HEAD = "POST /a?b HTTP/1.1\r\nHost: a:1\r\nX-Own: b\r\nUpgrade: c, d\r\nConnection: upgrade\r\nX: y\r\n" \
         "Transfer-Encoding: chunked\r\n\r\n".b.freeze
  FIELDS = ["host", "a:1", "x-own", "b", "upgrade", "c, d", "connection", "upgrade", "x", "y",
            "transfer-encoding", "chunked"].freeze

  def setup
    @configuration = Limits.new
    # What is loaded on the way is not what is tested.
    [H1::RequestHead, H1::ReceivedResponse, Heddle::HTTP::Rejection]
  end

  def under_stress
    GC.stress = true
    yield
  ensure
    GC.stress = false
  end

  def test_heads_under_stress
    parser = H1::HeadParser.new(@configuration)
    head = under_stress { parser.parse("xx#{HEAD}", 2) }

    assert_equal [FIELDS, "/a", "b", %w[c d], "a", "1"],
                 [head.fields, head.path, head.query, head.upgrade, head.host, head.port]
    rejection = under_stress { parser.parse("GET\n") }

    assert_equal [400, true], [rejection.status, rejection.reason.frozen?]
  end

  def test_answers_under_stress
    parser = H1::ResponseParser.new(@configuration)
    head = under_stress { parser.parse("GET", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 3\r\n\r\n") }

    assert_equal [["a", "b c", "content-length", "3"], "OK", 3], [head.fields, head.reason, head.content_length]
  end

  def test_bodies_under_stress
    output = +"".b
    rejection = under_stress do
      decoder = H1::ChunkedDecoder.new(@configuration)
      decoder.decode("3\r\nabc\r\nx", 0, output)
      decoder.rejection
    end

    assert_equal ["abc", 400], [output, rejection.status]
  end

  def test_a_rejection_that_a_decoder_keeps_outlives_compaction
    skip "this Ruby can't compact" unless GC.respond_to?(:compact)

    decoders = Array.new(200) { H1::ChunkedDecoder.new(@configuration) }
    decoders.each { |decoder| decoder.decode("x", 0, +"") }
    GC.start
    GC.compact

    assert_equal [400], decoders.map { |decoder| decoder.rejection.status }.uniq
  end

  def test_uninitialized_objects_and_indexes_out_of_bounds_raise
    assert_raises(ArgumentError) { H1::HeadParser.allocate.parse("GET") }
    parser = H1::HeadParser.new(@configuration)
    assert_raises(ArgumentError) { parser.parse("GET", 4) }
    assert_raises(ArgumentError) { parser.parse("GET", 2, 1) }
    assert_raises(ArgumentError) { parser.parse("GET", 0, 4) }
    assert_raises(TypeError) { parser.parse(nil) }
    decoder = H1::ChunkedDecoder.new(@configuration)
    assert_raises(ArgumentError) { decoder.decode("0", 2, +"") }
    assert_raises(FrozenError) { decoder.decode("0", 0, "") }
    same = +"0"
    assert_raises(ArgumentError) { decoder.decode(same, 0, same) }
  end

  def test_a_parser_that_is_initialized_again_takes_the_new_limits
    parser = H1::HeadParser.new(Limits.new(header_count: 1))
    parser.send(:initialize, Limits.new(header_count: 50))

    assert_equal FIELDS, parser.parse(HEAD).fields
  end
end
