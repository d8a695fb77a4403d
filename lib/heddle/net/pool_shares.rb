# frozen_string_literal: true

module Heddle
  module Net
    # A worker's shares of the pools that all workers limit together. The scoreboard has the counts, so the master can
    # release the shares of a killed worker.
    class PoolShares
      # One pool of this worker.
      class Share
        # @return [Integer] how many resources all workers may have
        attr_reader :total

        # @api private
        def initialize(scoreboard, pool, slot, total)
          @scoreboard = scoreboard
          @pool = pool
          @slot = slot
          @total = total
          @waits = false
        end

        # Asks for the share of one more resource.
        # @return [Boolean] false: none is left, or another worker has fewer and waits for one
        def take
          taken = @scoreboard.take_share(@pool, @slot)
          @waits = false if taken
          taken
        end

        # A resource is closed.
        # @return [void]
        def return_one = @scoreboard.return_share(@pool, @slot)

        # Reports whether this worker waits for a share; others return one then. Must be repeated at every {Pool} tick.
        # @return [void]
        def wait(waits)
          @scoreboard.wait_for_share(@pool, @slot, waits) if waits || @waits
          @waits = waits
        end

        # @return [Integer, nil] the smallest number of resources of another waiting worker; nil: none waits
        def least_waiting = @scoreboard.least_waiting(@pool, @slot)

        # @return [Integer] how many resources all workers have
        def taken = @scoreboard.shares(@pool)
      end

      # @param scoreboard [Scoreboard]
      # @param slot [Integer]
      def initialize(scoreboard, slot)
        @scoreboard = scoreboard
        @slot = slot
        @process = Process.pid
      end

      # @param name [String] of the pool, the same in all workers
      # @param total [Integer] how many resources all workers may have
      # @return [Share, nil] nil in a process that this worker has forked: the place is not its own
      # @raise [ArgumentError]
      def open(name, total)
        return unless @process == Process.pid

        pool = @scoreboard.open_pool(name, total) or
          raise ArgumentError, "#{name}: a server can have at most 32 pools with max_total"
        Share.new(@scoreboard, pool, @slot, total)
      end
    end
  end
end
