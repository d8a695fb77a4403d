# frozen_string_literal: true

require_relative "support/cases"

# A truncated body never counts as a complete one, however the application reads it (RFC 9112, 8; http.md "one that
# vanishes mid-body").
class TruncatedBodiesConformanceTest < Minitest::Test
  include Conformance

  # A body above this is handed to the application while it comes.
  served_with body_buffer: 64, stream_bodies: %w[all]

  SEEN = Thread::Queue.new

  ways = {
    "read" => lambda(&:read), "read of everything by number" => ->(input) { input.read(1_000_000) },
    "read by pieces" => ->(input) { nil while input.read(7) }, "read into a buffer" => lambda { |input|
      buffer = +""
      nil while input.read(10, buffer)
    },
    "gets" => ->(input) { nil while input.gets }, "each" => ->(input) { input.each {} }
  }
  ways.each do |name, way|
    at("/#{name.tr(" ", "-")}") do |env|
      way.call(env["rack.input"])
      SEEN << :end
      [200, {}, ["whole"]]
    rescue Heddle::ClientGoneError, Heddle::HTTP::BadRequestError => e
      SEEN << e.class
      raise
    end
  end

  chunk = "c8\r\n#{"y\n" * 100}\r\n".freeze
  bodies = {
    "sized at its start" => ["Content-Length: 400", ""], "sized in its middle" => ["Content-Length: 400", "y\n" * 100],
    "sized before its last byte" => ["Content-Length: 400", ("y\n" * 200).chop],
    "chunked at its start" => ["Transfer-Encoding: chunked", ""],
    "chunked in a size" => ["Transfer-Encoding: chunked", "#{chunk}c"],
    "chunked after a size" => ["Transfer-Encoding: chunked", "#{chunk}c8\r\n"],
    "chunked in data" => ["Transfer-Encoding: chunked", "#{chunk}c8\r\nyyy"],
    "chunked after data" => ["Transfer-Encoding: chunked", chunk.chomp],
    "chunked after a chunk" => ["Transfer-Encoding: chunked", chunk],
    "chunked in the last chunk" => ["Transfer-Encoding: chunked", "#{chunk}0"],
    "chunked after the last size" => ["Transfer-Encoding: chunked", "#{chunk}0\r\n"],
    "chunked in the last line end" => ["Transfer-Encoding: chunked", "#{chunk}0\r\n\r"],
    "chunked in a trailer" => ["Transfer-Encoding: chunked", "#{chunk}0\r\nX-A: b\r\n"],
    "chunked in a trailer's line end" => ["Transfer-Encoding: chunked", "#{chunk}0\r\nX-A: b\r\n\r"]
  }

  ways.each_key do |way|
    path = "/#{way.tr(" ", "-")}"
    bodies.each do |name, (line, body)|
      conform "half closed #{name} by #{way}", post(line, path:, body:) do |client|
        client.close_write

        assert_rejection 400, client.answer
        assert_nil client.answer
        assert_cut_short
      end
    end
    conform "reset in its middle by #{way}", post("Content-Length: 400", path:, body: "y\n" * 100) do |client|
      self.class.wait_for_call(@calls_before)
      client.reset

      assert_equal Heddle::ClientGoneError, SEEN.pop(timeout: Server::PATIENCE)
    end
  end

  class << self
    # Until the application has been called.
    def wait_for_call(before)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Conformance::Server::PATIENCE
      sleep 0.001 until server.calls > before || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
  end

  # Either the application was not called, or its read raised.
  def assert_cut_short # rubocop:disable Minitest/TestMethodName
    assert_equal Heddle::ClientGoneError, SEEN.pop(timeout: Server::PATIENCE) if calls > 0
    assert_empty SEEN
  end

  conform "a small body cut short does not reach the application",
          post("Content-Length: 40", path: "/read", body: "y") do |client|
    client.close_write

    assert_rejection 400, client.answer
    assert_cut_short
  end
  conform "a body that turns out malformed raises",
          post("Transfer-Encoding: chunked", path: "/read", body: "#{chunk}x\r\n") do |client|
    assert_rejection 400, client.answer
    assert_equal Heddle::HTTP::BadRequestError, SEEN.pop(timeout: Server::PATIENCE) if calls > 0
    assert_empty SEEN
  end
  conform "a whole body is read to its end", post("Content-Length: 400", path: "/read", body: "y\n" * 200) do |client|
    assert_equal "whole", client.answer.content
    assert_equal :end, SEEN.pop(timeout: Server::PATIENCE)
  end
end
