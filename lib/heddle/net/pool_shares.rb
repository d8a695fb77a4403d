# frozen_string_literal: true

module Heddle
  module Net
    # A worker's shares of the pools that all workers limit together. The scoreboard has the counts, so the master can
    # release the shares of a killed worker.
    class PoolShares
      # Seconds for which a worker keeps all shares while another worker waits and has none.
      ROTATION = 0.1
      private_constant :ROTATION

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
          @yielded = nil
        end

        # Asks for the share of one more resource.
        # @return [Boolean] false: none is left, or another worker has fewer and waits for one
        def take
          return false unless @scoreboard.take_share(@pool, @slot)

          @waits = false
          @yielded ||= MonotonicClock.now
          true
        end

        # Returns the share of a closed resource.
        # @return [void]
        def return_one = @scoreboard.return_share(@pool, @slot)

        # Reports whether this worker waits for a share. If it does, another worker returns one. A report expires, so it
        # must be repeated.
        # @return [Boolean] whether it waits
        def wait(waits)
          @scoreboard.wait_for_share(@pool, @slot, waits) if waits || @waits
          @waits = waits
        end

        # @return [Integer, nil] the smallest number of resources of another waiting worker; nil: none waits, or a share
        #   is free
        def least_waiting = @scoreboard.least_waiting(@pool, @slot)

        # Must a released resource be closed because another worker waits for a share?
        # @param size [Integer] how many resources this worker has
        # @param least [Integer, nil] how many the other one has
        def yields?(size, least = least_waiting)
          return false unless least
          return true if size > least + 1
          return false unless least.zero? && MonotonicClock.now - (@yielded || 0) >= ROTATION

          @yielded = MonotonicClock.now
          true
        end

        # @return [Integer] how many resources all workers have
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

      # @param name [String] of the pool, the same in all workers
      # @param total [Integer] how many resources all workers may have
      # @return [Share, nil] nil in a process that this worker has forked, which has no slot of its own
      # @raise [ArgumentError]
      def open(name, total)
        return unless @process == Process.pid

        pool = @scoreboard.open_pool(name, total) or
          raise ArgumentError, "#{name}: a server can have at most 32 pools with max_total"
        Share.new(@scoreboard, pool, @slot, total)
      end

      # @return [Array<#shares_changed>] limits of other libraries' pools
      def limits = @limits.values

      # @param name [String] of a limit of another library's pools
      # @yieldreturn [#shares_changed] the limit; called once
      # @return [#shares_changed, nil] (see #open)
      def limit(name)
        return unless @process == Process.pid

        @limits[name] || @lock.synchronize { @limits[name] ||= yield }
      end
    end
  end
end
