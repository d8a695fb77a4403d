# frozen_string_literal: true

require "test_helper"
require "support/preempted"

# What wakes a fiber through the selector does so while others compute. What else preemption promises is no selector's:
# preemption_test.rb.
class PreemptedWakesTest < Minitest::Test
  include Preempted

  def test_events_timers_and_other_threads_reach_their_fibers_meanwhile
    done = []
    reader, writer = IO.pipe
    queue = Thread::Queue.new
    scheduled do
      3.times { Fiber.schedule { nil until done.size == 3 } }
      Fiber.schedule do
        reader.readbyte
        done << :event
      end
      Fiber.schedule do
        queue.pop
        done << :thread
      end
      Fiber.schedule do
        sleep 0.02
        done << :timer
      end
      Thread.new do
        writer.write("x")
        queue << 1
      end
    end

    assert_equal %i[event thread timer], done.sort
  end
end
