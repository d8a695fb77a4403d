# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle"

# Calls of other threads for the sockets of a loop.
class CableThreadCallsTest < Minitest::Test
  LIMIT = 1_000

  # Notes what it is asked to do.
  class Socket
    attr_reader :done

    def initialize = @done = []
    def perform_work(number) = @done << number
  end

  def test_calls_run_in_order_and_a_thread_waits_when_too_many_are_queued
    socket = Socket.new
    waiting = nil
    Heddle.run do
      calls = Heddle::Cable::ThreadCalls.new
      pushed = 0
      thread = Thread.new { (LIMIT + 5).times { |number| calls.push(socket, number) && (pushed += 1) } }
      Thread.pass until thread.stop? # the loop runs nothing meanwhile
      waiting = pushed
      thread.join
      Heddle.run { sleep 0 until socket.done.size == LIMIT + 5 }
    end

    assert_equal LIMIT, waiting
    assert_equal (0...(LIMIT + 5)).to_a, socket.done
  end

  def test_calls_for_an_ended_loop_are_dropped
    calls = Heddle.run { Heddle::Cable::ThreadCalls.new.tap { sleep 0 } }
    socket = Socket.new
    Thread.new { (LIMIT + 5).times { |number| calls.push(socket, number) } }.join

    assert_empty socket.done
  end

  def test_a_queue_is_needed_in_other_threads_only
    Heddle.run do
      calls = Heddle::Cable::ThreadCalls.new

      assert_equal [false, true], [calls.needed?, Thread.new { calls.needed? }.value]
    end
  end
end
