# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

class DrainTest < Minitest::Test
  include ServerHelpers

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    super
    skip "only epoll and io_uring have a set of their own" unless RUBY_PLATFORM.include?("linux")
    @pair = UNIXSocket.pair(:SEQPACKET)
  end

  def teardown
    @pair&.each(&:close)
    super
  end

  # Nobody else is left to receive it.
  def test_a_connection_that_was_handed_off_is_answered_when_all_workers_stop
    app = ->(_env) { [200, { "content-length" => "4" }, ["done"]] }
    start(app)
    client = connect
    client.write(GET)
    read_answer(client)
    until_statistics { |found| found[:idle] == 1 }
    server.stop(handoff_sender: @pair.first)
    wait_for_end
    client.write(GET)
    start(app, scoreboard_slot: [Heddle::Net::Scoreboard.new(2), 0], handoff_sockets: @pair)
    stop

    assert_operator read_all(client), :end_with?, "connection: close\r\n\r\ndone"
  end

  # Such as a WebSocket of Action Cable's own server.
  def test_a_hijacked_connection_does_not_delay_a_stop_that_follows_a_reload
    taken = Thread::Queue.new
    start(->(env) { taken.push(env["rack.hijack"].call) && [200, {}, []] }, stop_timeout: 600)
    client = connect
    client.write(GET)
    socket = taken.pop(timeout: PATIENCE)
    server.stop(handoff_sender: @pair.first)
    until_statistics { |found| !found[:accepting] }
    server.stop

    assert wait_for_end, "it waits for the hijacked connection"
  ensure
    socket&.close
  end

  # A new master that reads no handed-off connections serves, too.
  def test_a_hijacked_connection_stays_open_for_stop_timeout_when_other_workers_serve_without_handoff
    taken = Thread::Queue.new
    start(->(env) { taken.push(env["rack.hijack"].call) && [200, {}, []] }, stop_timeout: 0.5)
    client = connect
    client.write(GET)
    socket = taken.pop(timeout: PATIENCE)
    stopped = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    server.stop(handoff_sender: false)
    wait_for_end

    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - stopped, :>=, 0.5
  ensure
    socket&.close
  end
end
