# frozen_string_literal: true

require "heddle/concurrency/wait_list"

module Heddle
  # Something that tasks of one loop wait for until another task signals it. There is no lock: without preemption
  # nothing else runs between checking a state and waiting. With preemption another task may signal in between, and the
  # signal is missed. So put the check and the wait into `Heddle.without_preemption { }`: other tasks run only during
  # the wait.
  #
  #     changed.wait until queue_is_short
  class Condition
    def initialize
      @waiting = Concurrency::WaitList.new
    end

    # Waits for the next signal.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [true, nil] nil when the time is over
    def wait(timeout: nil)
      @waiting.wait(timeout) { signal } || nil
    end

    # Wakes the task that has waited longest.
    #
    # @return [Boolean] did one wait?
    def signal = @waiting.wake

    # Wakes all that wait now.
    #
    # @return [Integer] how many
    def broadcast = @waiting.wake_all

    # @return [Integer] how many tasks wait
    def waiting = @waiting.size
  end
end
