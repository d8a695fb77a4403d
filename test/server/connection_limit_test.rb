# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# How many connections a server takes: never so many that they alone use up its memory.
class ConnectionLimitTest < Minitest::Test
  include ServerHelpers

  GIB = 1_073_741_824
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def limit(descriptors: 1_048_576, memory: GIB, **options)
    configuration = Constants.configuration(**options)
    Heddle::Server::ConnectionLimit.of(configuration, descriptors:, memory:)
  end

  def test_the_default_is_what_fits_into_memory
    all = GIB - 16_777_216

    assert_equal all / 180_224, limit(workers: 0), "114,688 bytes and body_buffer, and http2_memory once"
    assert_equal ((GIB / 4) - 16_777_216) / 180_224, limit(workers: 4), "a worker's share"
    assert_equal all / 1_114_688, limit(workers: 0, body_buffer: 1_000_000)
    assert_equal GIB / 180_224, limit(workers: 0, http2: :off)
    assert_equal (GIB - 1_000_000) / 180_224, limit(workers: 0, http2_memory: 1_000_000)
  end

  def test_the_default_leaves_descriptors_to_the_application_and_to_bodies_in_files
    assert_equal 704, limit(descriptors: 1_024)
    assert_equal 704, limit(descriptors: 1_024, memory: nil)
    assert_equal 98_912, limit(descriptors: 100_000, memory: nil), "bodies have a thousand files at most"
    assert_equal 16, limit(descriptors: 20), "and is never nothing"
  end

  def test_a_configured_limit_overrides_the_computed_one
    assert_equal 100_000, limit(max_connections: 100_000, memory: 1_000_000)
  end

  def test_at_the_limit_new_connections_wait_and_the_log_says_so_once
    serving(text, max_connections: 2, lint: false) do
      kept = Array.new(2) { connect.tap { |socket| socket.write(GET) && read_answer(socket) } }
      waiting = connect
      waiting.write(GET)
      until_statistics { said > 0 }

      refute waiting.wait_readable(0)
      kept.each(&:close)

      assert_match(%r{\AHTTP/1.1 200}, read_answer(waiting))
      waiting.close
    end
    assert_equal 1, said
  end

  def said = output.string.scan("busy: 2 connections are open, as many as max_connections allows").size
end
