# frozen_string_literal: true

module Heddle
  module Net
    # Shares of the pools whose size is limited for all workers together (`max_total`). A share is the right to have one
    # resource. The scoreboard (shared memory) has the counts, so the master can release the shares of a killed worker.
    class PoolShares
      # Seconds. When a worker without a share waits, another worker may give up its only share, but at most once in
      # this time.
      ROTATION = 0.1
      private_constant :ROTATION

      # This worker's shares of one pool.
      class Share
        # @return [Integer] maximum number of resources of all workers together
        attr_reader :total

        # @api private
        def initialize(scoreboard, pool, slot, total)
          @scoreboard = scoreboard
          @pool = pool
          @slot = slot
          @total = total
          @waits = false
          @yielded = nil
        end

        # Requests a share for one more resource.
        # @return [Boolean] false: no share is free, or the free shares are for other waiting workers: those with fewer
        #   shares, and those with the same number that have waited longer
        def take
          return false unless @scoreboard.take_share(@pool, @slot)

          @waits = false
          @yielded ||= MonotonicClock.now
          true
        end

        # Returns the share of a closed resource.
        # @return [void]
        def return_one = @scoreboard.return_share(@pool, @slot)

        # Reports whether this worker waits for a share, so that another worker returns one. A report expires, so a
        # waiting worker must repeat it.
        # @return [Boolean] the argument
        def wait(waits)
          @scoreboard.wait_for_share(@pool, @slot, waits) if waits || @waits
          @waits = waits
        end

        # @return [Integer, nil] the smallest number of shares that any other waiting worker has; nil: no other worker
        #   waits, or a share is free
        def least_waiting = @scoreboard.least_waiting(@pool, @slot)

        # Must this worker close the resource that was just released, so that another worker gets the resource's share?
        # @param size [Integer] number of resources of this worker
        # @param least [Integer, nil] number of resources of the waiting worker or pool; nil: none waits
        def yields?(size, least = least_waiting)
          return false unless least
          return true if size > least + 1
          return false unless least.zero? && MonotonicClock.now - (@yielded || 0) >= ROTATION

          @yielded = MonotonicClock.now
          true
        end

        # @return [Integer] number of resources of all workers together
        def taken = @scoreboard.shares(@pool)
      end

      # @param scoreboard [Scoreboard]
      # @param slot [Integer]
      def initialize(scoreboard, slot)
        @scoreboard = scoreboard
        @slot = slot
        @process = Process.pid
        @limits = {}
        @lock = Mutex.new
      end

      # @param name [String] name of the pool, the same in all workers
      # @param total [Integer] maximum number of resources of all workers together
      # @return [Share, nil] nil in a process that the worker has forked: that process has no slot in the scoreboard
      # @raise [ArgumentError]
      def open(name, total)
        return unless @process == Process.pid

        pool = @scoreboard.open_pool(name, total) or
          raise ArgumentError, "#{name}: a server can have at most 32 pools with max_total"
        Share.new(@scoreboard, pool, @slot, total)
      end

      # @return [Array<#shares_changed>] the objects that {#limit} has made
      def limits = @limits.values

      # @param name [String] name of a limit for pools of another library, such as Active Record
      # @yieldreturn [#shares_changed] the limit; the block is called once for each name
      # @return [#shares_changed, nil] (see #open)
      def limit(name)
        return unless @process == Process.pid

        @limits[name] || @lock.synchronize { @limits[name] ||= yield }
      end
    end
  end
end
