# frozen_string_literal: true

require "heddle/concurrency/wait_list"

module Heddle
  # A condition variable for the tasks of one loop. It needs no lock: without preemption, no other task runs between the
  # check of a state and the call of {#wait}. With preemption, another task may signal in between, and the signal is
  # missed. In this case put the check and the wait into `Heddle.without_preemption { }`, so that other tasks run only
  # during the wait.
  #
  #     changed.wait until queue_is_short
  class Condition
    def initialize
      @waiting = Concurrency::WaitList.new("Heddle::Condition#wait")
    end

    # Waits for the next signal.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
    # @return [true, nil] nil: the timeout has passed
    def wait(timeout: nil)
      @waiting.wait(timeout) { signal } || nil
    end

    # Wakes the task that has waited longest.
    #
    # @return [Boolean] false: no task waits
    def signal = @waiting.wake

    # Wakes all waiting tasks.
    #
    # @return [Integer] number of tasks woken
    def broadcast = @waiting.wake_all

    # @return [Integer] number of waiting tasks
    def waiting = @waiting.size
  end
end
