# frozen_string_literal: true

require "heddle/concurrency/timeout_error"
require "heddle/concurrency/wait_list"

module Heddle
  # A point at which a fixed number of tasks of one loop wait for each other: all continue when the last one has
  # arrived. Then it can be used again.
  class Barrier
    # @return [Integer] how many tasks must arrive
    attr_reader :parties

    def initialize(parties)
      unless parties.is_a?(Integer) && parties >= 1
        raise ArgumentError, "the number of parties is #{parties.inspect}, but must be 1 or more"
      end

      @parties = parties
      @waiting = Concurrency::WaitList.new
    end

    # @return [Integer] how many wait for the others
    def waiting = @waiting.size

    # Waits until all have arrived. A task that is cancelled or times out does not count as arrived.
    #
    # @param timeout [Numeric, nil] seconds to wait at most
    # @return [Integer] the order of arrival: 0 is the first, `parties - 1` the last
    # @raise [TimeoutError]
    def wait(timeout: nil)
      arrival = @waiting.size
      if arrival == @parties - 1 then @waiting.wake_all
      elsif !@waiting.wait(timeout)
        raise TimeoutError, "only #{arrival + 1} of #{@parties} tasks reached the barrier within #{timeout} s"
      end
      arrival
    end
  end
end
