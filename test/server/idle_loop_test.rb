# frozen_string_literal: true

# test: each selector

require "test_helper"
require_relative "server_helpers"

# A loop with nothing to do does not spin, whatever it waits for.
class IdleLoopTest < Minitest::Test
  include ServerHelpers

  # Turns a second: timers and looks at times have theirs, some dozens. A loop that is woken for nothing turns by the
  # ten thousand, on a slow machine too.
  MOST = 400
  # Seconds that are looked at.
  SPAN = 0.5

  # None of its clients has been waited for long enough, however slow the machine is.
  TIMES = %i[head_timeout body_grace write_timeout idle_timeout linger_timeout].to_h { |name| [name, 600] }.freeze

  # What each client sends, and then waits.
  CLIENTS = {
    "nothing" => "",
    "half a head" => "GET / HTTP/1.1\r\nHo",
    "half a body" => "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 100\r\n\r\nabc",
    "half of a large body" => "POST /read HTTP/1.1\r\nHost: a\r\ncontent-length: 1000000\r\n\r\nabc",
    "a request that is answered" => "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a request that waits" => "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",
    "a request whose answer nobody reads" => "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
    "a request whose stream nobody reads" => "GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n",
    "what is no request" => "nonsense\r\n\r\n"
  }.freeze

  def application
    large = "x" * 20_000_000
    lambda do |env|
      case env["PATH_INFO"]
      when "/wait" then sleep
      when "/read" then env["rack.input"].read
      when "/large" then return [200, {}, [large]]
      when "/pieces" then return [200, {}, Enumerator.new { |body| loop { body << large } }]
      end
      [200, {}, ["hello"]]
    end
  end

  def turns = server.statistics.fetch(:ticks)

  # When all of it has been taken in: nothing has turned the loop for a while.
  def come_to_rest
    before = nil
    until before && turns - before < MOST * SPAN
      flunk "it never comes to rest: #{turns - before} turns in #{SPAN} s" if now > (@deadline ||= now + PATIENCE)
      before = turns
      sleep SPAN
    end
  end

  def test_a_loop_with_idle_clients_only_does_not_tick
    sockets = []
    start(application, lint: false, protect: [], **TIMES)
    CLIENTS.each_value { |bytes| sockets << connect.tap { |socket| socket.write(bytes) } }
    until_statistics { |found| found[:accepted] == CLIENTS.size }
    come_to_rest
    sockets.each(&:close_write) # an end of input, which stays
    come_to_rest
    began = now
    before = turns
    sleep SPAN

    assert_operator (turns - before) / (now - began), :<, MOST, "turns a second: it spins"
  ensure
    sockets&.each(&:close)
    @server&.stop(now: true)
    @thread&.join(PATIENCE)
  end
end
