# frozen_string_literal: true

require "test_helper"
require "heddle"

# Loaded now: what is loaded in a loop waits for files, which is not what the tests look at.
%i[Context Deadline Every Map Race Root Supervisor TreeSignal].each { |name| Heddle::Concurrency.const_get(name) }
%i[Barrier Channel Condition Databases Pool Promise Semaphore TimeoutError].each { |name| Heddle.const_get(name) }

module Heddle
  # What tests of tasks share. No test sleeps to wait for something: it lets the others have turns.
  module LoopHelpers
    # Lets everybody who is ready run, several times.
    def turns(count = 5)
      count.times { Fiber.scheduler.yield }
    end

    # Waits for good.
    def forever = Fiber.scheduler.park

    # Closes a loop whose fibers wait in these blocks, as clean-ups: a second exception ends the wait for the clean-up
    # of fibers that were cancelled.
    def close_loop_during(*waits)
      assert_raises(SystemExit) do
        Heddle.run do
          [*waits, -> { exit }].each do |clean_up|
            Fiber.schedule do
              forever
            ensure
              clean_up.call
            end
          end
          Fiber.schedule { exit }
          forever
        end
      end
    end

    # Seconds that the block took.
    def seconds
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    end

    # Runs the block in a loop of this run's selector.
    def in_loop(**options, &block)
      Heddle.run(selector: selector_under_test, **options, &block)
    end
  end
end
