# frozen_string_literal: true

# test: each mode

require "test_helper"
require_relative "rack_helpers"

class InputTest < Minitest::Test
  include RackHelpers

  # What a body in memory and one in a file have to do alike.
  LINES = Array.new(3_000) { |number| "#{"x" * (number % 97)}\n" }.join.b.freeze

  def input(text) = Heddle::Rack::Input.new(text.b)

  # Has the application do something with a body that is in memory, and with one in a file.
  # @return [Array<String>] the contents of both answers
  def with_each_kind(text = LINES, &app)
    [1 << 20, 64].map do |body_buffer|
      output = serve(->(env) { [200, {}, [app.call(env["rack.input"]).to_s]] },
                     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{text.bytesize}\r\n\r\n#{text}", body_buffer:)

      assert_equal body_buffer == 64 ? 1 : 0, conversation.engine.spooled
      parts(output)[2]
    end
  end

  def assert_each_kind(expected, text = LINES, &)
    assert_equal [expected.to_s] * 2, with_each_kind(text, &)
  end

  def test_reads_everything_then_nothing
    one = input("abc")

    assert_equal ["abc", "", nil, ""], [one.read, one.read, one.read(1), one.read(0)]
    assert_equal Encoding::BINARY, input("ä").read.encoding
    assert_equal ["", nil, nil], [input("").read, input("").gets, input("").read(1)]
    assert_each_kind(LINES) { |body| body.read + body.read }
  end

  def test_reads_as_many_bytes_as_asked_for
    one = input("abcde")

    assert_equal ["", "ab", "cd", "e", nil], [one.read(0), one.read(2), one.read(2), one.read(2), one.read(2)]
    assert_raises(ArgumentError) { one.read(-1) }
    assert_each_kind(LINES) do |body|
      text = +""
      while (piece = body.read(777))
        text << piece
      end
      text
    end
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
    one = input("abcd")

    assert_equal %w[ab cd], [one.readpartial(2), one.readpartial(10)]
    assert_raises(EOFError) { one.readpartial(1) }
  end

  def test_reads_lines
    one = input("a\nbc\n\nd")

    assert_equal ["a\n", "bc\n", "\n", "d", nil], Array.new(5) { one.gets }
    assert_each_kind(LINES.lines.size) { |body| body.enum_for.count }
    assert_each_kind(LINES) { |body| body.enum_for.to_a.join }
    long = "#{"y" * 40_000}\n#{"z" * 100}"

    assert_each_kind([40_001, 100, true], long) { |body| [body.gets.size, body.gets.size, body.gets.nil?] }
  end

  # Rack::Lint hands on what the specification has, and no more.
  def test_reads_from_the_beginning_again_and_knows_its_place
    one = input("abc")

    assert_equal [3, 0, false], [one.size, one.pos, one.eof?]
    assert_equal ["abc", 3, true, 0, "abc"], [one.read, one.pos, one.eof?, one.rewind, one.read]
  end

  def test_changing_a_read_string_does_not_change_the_input
    one = input("abc")
    one.read << "d"
    one.rewind

    assert_equal "abc", one.read
  end

  def test_a_closed_input_is_not_read
    one = input("a")
    one.close

    assert_predicate one, :closed?
    %i[read gets rewind size eof?].each { |method| assert_raises(IOError) { one.public_send(method) } }
  end

  def test_requests_without_a_body_have_an_empty_input
    none = Heddle::Rack::NoInput::INSTANCE

    assert_equal ["", nil, "", nil], [none.read, none.read(1), none.read(0), none.gets]
    buffer = +"x"

    assert_same buffer, none.read(nil, buffer)
    assert_equal "", buffer
    assert_nil none.read(1, +"x")
    none.each { flunk }
    assert_raises(EOFError) { none.readpartial(1) }
    assert_equal [nil, 0, 0, true], [none.close, none.rewind, none.size, none.eof?]
  end

  def test_applications_read_bodies_of_every_framing
    app = ->(env) { [200, {}, [env["rack.input"].read]] }
    large = "x" * 100_000
    ["Content-Length: 100000\r\n\r\n#{large}",
     "Transfer-Encoding: chunked\r\n\r\n#{"3e8\r\n#{"x" * 1_000}\r\n" * 100}0\r\n\r\n"]
      .each do |rest|
      output = serve(app, "POST / HTTP/1.1\r\nHost: a\r\n#{rest}")

      assert_equal large, parts(output)[2]
      output = serve(app, *"POST / HTTP/1.1\r\nHost: a\r\n#{rest}".scan(/.{1,999}/m))

      assert_equal large, parts(output)[2]
    end
  end

  def test_a_body_that_is_kept_longer_than_its_request_is_closed
    kept = nil
    app = lambda do |env|
      kept = env["rack.input"]
      [200, {}, []]
    end
    converse_with(app, lint: false, body_buffer: 1) do |conversation|
      conversation.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n#{"x" * 20}")
      conversation.settle
      error = assert_raises(IOError) { kept.read }

      assert_equal "the request has ended, and its body is closed", error.message
      conversation.await { conversation.engine.body_disk_used == 0 }
    end
  end
end
