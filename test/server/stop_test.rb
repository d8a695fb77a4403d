# frozen_string_literal: true

# test: each mode
# test: smoke

require "test_helper"
require_relative "server_helpers"
require "support/h2_exchanges"

class StopTest < Minitest::Test
  include ServerHelpers
  include H2Exchanges

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  # An application whose requests wait until they are let go.
  def held
    @arrived = Thread::Queue.new
    @release = Thread::Queue.new
    lambda do |_env|
      @arrived << true
      @release.pop
      [200, {}, ["done"]]
    end
  end

  def test_running_requests_are_answered_and_idle_connections_closed
    start(held)
    idle = connect
    busy = connect
    busy.write(GET)
    @arrived.pop(timeout: PATIENCE)
    server.stop

    assert_equal "", read_all(idle)
    assert_raises(Errno::ECONNREFUSED) { connect }
    @release << true
    answer = read_all(busy)

    assert_operator answer, :end_with?, "done"
    assert_includes answer, "connection: close\r\n"
    assert wait_for_end, "every request was answered"
  end

  # Its client connects again. Any other stream that a body has left open may still get the rest of its content.
  def test_an_event_stream_that_a_body_has_left_open_ends_when_the_server_stops
    kept = Thread::Queue.new
    start(->(_env) { [200, { "content-type" => "text/event-stream" }, ->(stream) { kept << stream }] })
    client = connect
    client.write(GET)
    stream = kept.pop(timeout: PATIENCE)
    server.stop

    assert_operator read_all(client), :end_with?, "\r\n0\r\n\r\n"
    assert wait_for_end, "every request was answered"
    assert_predicate stream, :closed?
  end

  def test_requests_that_take_too_long_are_cancelled
    start(held, stop_timeout: 0.1)
    busy = connect
    busy.write(GET)
    @arrived.pop(timeout: PATIENCE)
    server.stop

    refute wait_for_end
    assert_operator read_all(busy), :start_with?, "HTTP/1.1 503 Service Unavailable\r\n"
    assert_match(/stopping after 0.1 s with 1 request unanswered/, output.string)
  end

  [{ mode: :fiber }, { mode: :fiber, threads: 2 }, { mode: :thread }, { mode: :single }].each do |options|
    define_method("test_request_that_is_cancelled_by_the_stop_gets_503_over_http2_in_#{options.values.join("_")}") do
      start(held, stop_timeout: 0.1, **options)
      contents = Thread.new { exchange_together(connect, 1) }
      @arrived.pop(timeout: PATIENCE)
      server.stop

      assert_match(/\A503 /, contents.value[1])
      refute wait_for_end
    end
  end

  def test_an_upload_cut_off_by_the_stop_is_logged
    start(held, stop_timeout: 0.4)
    upload = connect
    upload.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n")

    assert_equal "HTTP/1.1 100 Continue\r\n", upload.gets
    upload.write("a")
    server.stop

    refute wait_for_end
    assert_match(/stopping after 0.4 s with 0 requests unanswered, and 1 upload or download cut off$/, output.string)
  end

  def test_stopping_now_does_not_wait
    start(held)
    busy = connect
    busy.write(GET)
    @arrived.pop(timeout: PATIENCE)
    server.stop(now: true)

    refute wait_for_end
    assert_operator read_all(busy), :start_with?, "HTTP/1.1 503 Service Unavailable\r\n"
  end

  def test_a_server_leaves_nothing_behind
    # Ruby's own thread for time limits is there to stay.
    serving(text) { get("/") }
    threads = Thread.list.size
    descriptors = Dir.children("/proc/self/fd").size if File.directory?("/proc/self/fd")
    3.times { serving(text) { assert_equal "hello", get("/").body } }

    assert_equal threads, Thread.list.size
    assert_operator Dir.children("/proc/self/fd").size, :<=, descriptors + 1 if descriptors
  end
end
