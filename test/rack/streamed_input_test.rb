# frozen_string_literal: true

# test: each mode

require "test_helper"
require_relative "rack_helpers"

class StreamedInputTest < Minitest::Test
  include RackHelpers

  # Stands for a request's body that comes in pieces.
  Body = Struct.new(:pieces) do
    def read
      piece = pieces.shift
      piece.is_a?(Class) ? raise(piece, "gone") : piece&.b
    end
  end

  def input(*pieces) = Heddle::Rack::StreamedInput.new(Body.new(pieces))

  def test_reads_everything_then_nothing
    one = input("ab", "c")

    assert_equal ["abc", "", nil, ""], [one.read, one.read, one.read(1), one.read(0)]
    assert_equal Encoding::BINARY, input("ä").read.encoding
  end

  def test_reads_as_many_bytes_as_asked_for_however_they_come
    one = input("a", "bcd", "e")

    assert_equal ["", "ab", "cd", "e", nil], [one.read(0), one.read(2), one.read(2), one.read(2), one.read(2)]
    assert_raises(ArgumentError) { one.read(-1) }
  end

  def test_reads_into_a_buffer
    buffer = +"old"
    one = input("abc")

    assert_same buffer, one.read(2, buffer)
    assert_equal "ab", buffer
    assert_same buffer, one.read(nil, buffer)
    assert_equal "c", buffer
    assert_nil one.read(2, buffer)
    assert_equal "", buffer
    assert_same buffer, one.read(nil, buffer)
  end

  def test_reads_what_there_is
    one = input("abc", "d")

    assert_equal %w[ab c d], [one.readpartial(2), one.readpartial(10), one.readpartial(10)]
    assert_raises(EOFError) { one.readpartial(1) }
  end

  def test_reads_lines
    one = input("a\nb", "c", "\n\nd")

    assert_equal ["a\n", "bc\n", "\n", "d", nil], Array.new(5) { one.gets }
    lines = []

    assert_kind_of(Heddle::Rack::StreamedInput, input("a\nb").each { |line| lines << line })
    assert_equal %W[a\n b], lines
  end

  def test_a_body_cut_short_is_never_taken_for_its_end
    %i[read gets].each { |method| assert_raises(Heddle::ClientGoneError) { input("a", Heddle::ClientGoneError).public_send(method) } }
    assert_raises(Heddle::ClientGoneError) { input("a", Heddle::ClientGoneError).read(2) }
    assert_raises(Heddle::ClientGoneError) { input("a", Heddle::ClientGoneError).each { |line| flunk line } }
  end

  def test_a_closed_input_is_not_read
    one = input("a")
    one.close

    assert_predicate one, :closed?
    assert_raises(IOError) { one.read }
  end

  def test_applications_read_bodies_of_every_framing
    app = ->(env) { [200, {}, [env["rack.input"].read]] }
    large = "x" * 100_000
    ["Content-Length: 100000\r\n\r\n#{large}",
     "Transfer-Encoding: chunked\r\n\r\n#{"3e8\r\n#{"x" * 1_000}\r\n" * 100}0\r\n\r\n"]
      .each do |rest|
      output = serve(app, "POST / HTTP/1.1\r\nHost: a\r\n#{rest}", stream_bodies: true)

      assert_equal large, parts(output)[2]
      output = serve(app, *"POST / HTTP/1.1\r\nHost: a\r\n#{rest}".scan(/.{1,999}/m), stream_bodies: true)

      assert_equal large, parts(output)[2]
    end
  end

  def test_a_large_body_that_ends_too_early_is_a_bad_request_where_the_application_does_not_care
    app = ->(env) { [200, {}, [env["rack.input"].read]] }
    request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc"
    output = serve(app, request, open: false, stream_bodies: true)

    assert_operator output, :start_with?, "HTTP/1.1 400 "
    assert_equal [1, 0], [log.gone.size, log.failures.size]
  end

  def test_a_malformed_large_body_is_a_bad_request_where_the_application_does_not_care
    app = ->(env) { [200, {}, [env["rack.input"].read]] }
    output = serve(app,
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n#{"x" * 70_000}\r\nz\r\n",
                   stream_bodies: true)

    assert_operator output, :start_with?, "HTTP/1.1 400 "
    refute_predicate self, :kept?
  end
end
