# frozen_string_literal: true

module Heddle
  class Server
    # Computes the request limit: how many requests may run at once. At first there is none, and only the gate
    # (ext/heddle/net/request_gate.h) decides when the next request begins. Samples of the memory and of the pools
    # change the request limit:
    #
    # - While the memory is above its own limit and grows, the request limit is reduced step by step.
    # - While most requests wait for a pool, more running requests would not help. The request limit is reduced to twice
    #   the number of requests that don't wait for a pool, but not below POOL_FLOOR.
    # - Otherwise, unless the memory is above its limit, the request limit grows while it is reached or requests wait.
    #   After a while without either, it is removed.
    #
    # This class uses neither a clock nor sockets, so that it can be tested without them.
    class AdmissionPolicy
      # The worker's measurements at one moment.
      #
      # @!attribute elapsed [Float] seconds since the last sample
      # @!attribute memory [Integer, nil] bytes that the server uses; nil: not measured
      # @!attribute pool_waiting [Integer] tasks that wait for a resource of a pool
      # @!attribute busy [Integer] running requests
      # @!attribute waiting [Integer] requests that have not begun
      Sample = Data.define(:elapsed, :memory, :pool_waiting, :busy, :waiting)

      # Waits for pools never lower the limit below this number, because some requests use no pool.
      POOL_FLOOR = 16
      # A cut because of memory sets the limit to this share of the running requests, or of the limit if that is lower.
      CUT = 0.8
      # Minimum seconds from a cut to the next one by {#update}, so that the first one can take effect.
      CUT_INTERVAL = 0.5
      # While the limit grows, each sample raises it by this share of itself, and by at least 1.
      GROWTH = 0.1
      # The high-water mark is the memory at the last cut because of memory. When the memory falls below this share of
      # its limit, the mark is removed. After that, any memory above the limit causes a cut, not only growth above the
      # mark.
      SUFFICIENT = 0.75
      # The limit is removed after this many seconds in which no request waited and fewer ran than allowed.
      LIFT_AFTER = 10
      # The time constant, in seconds, of the moving averages.
      AVERAGED = 1.0
      # The memory counts as growing if it is above the high-water mark by more than this share of its limit.
      MIN_MEMORY_GROWTH = 0.005
      private_constant :CUT, :CUT_INTERVAL, :GROWTH, :SUFFICIENT, :LIFT_AFTER, :MIN_MEMORY_GROWTH

      # @return [Integer, nil] the maximum number of requests that run at once; nil: there is no limit
      attr_reader :limit

      # @return [Symbol, nil] why the limit was last reduced: :memory or :pool; nil: there is no limit
      attr_reader :reason

      # @param memory_limit [Integer, nil] bytes; nil: there is no limit
      def initialize(memory_limit: nil)
        @memory_limit = memory_limit
        @limit = @reason = @memory = @high_water = nil
        @pool_share = 0.0
        @since_cut = Float::INFINITY
        @calm = 0.0
      end

      # @param sample [Sample]
      # @return [Integer, nil] the new limit
      def update(sample)
        record(sample)
        pressure = find_pressure
        if pressure then reduce_limit(sample, pressure)
        elsif @limit && !memory_short? then raise_limit(sample)
        end
        @limit
      end

      # Called when a task begins to wait for a pool. Lowers the limit at once if most requests wait for pools.
      #
      # @param busy [Integer] running requests
      # @param pool_waiting [Integer] tasks that wait for a resource of a pool
      # @return [Integer, nil] the new limit
      def limit_for_pools(busy, pool_waiting)
        return @limit if busy <= POOL_FLOOR || pool_waiting * 2 <= busy

        bound = pool_bound(busy, pool_waiting)
        return @limit if @limit && @limit <= bound

        @calm = @since_cut = 0.0
        @reason = :pool
        @limit = bound
      end

      private

      def record(sample)
        share = sample.busy > 0 ? [sample.pool_waiting.fdiv(sample.busy), 1.0].min : 0.0
        @pool_share += (share - @pool_share) * (1 - Math.exp(-sample.elapsed / AVERAGED))
        @since_cut += sample.elapsed
        @memory = sample.memory if sample.memory
        @high_water = nil if @high_water && @memory < @memory_limit * SUFFICIENT
      end

      def find_pressure
        if memory_grows? then :memory
        elsif @pool_share > 0.5 then :pool
        end
      end

      def pool_bound(busy, pool_waiting) = [2 * [busy - pool_waiting, 0].max, POOL_FLOOR].max

      # A process hardly ever returns memory to the system. So memory above the limit causes no further cut unless it
      # grows.
      def memory_grows?
        memory_short? && @memory > (@high_water || 0) + (@memory_limit * MIN_MEMORY_GROWTH)
      end

      def memory_short? = @memory_limit && @memory && @memory > @memory_limit

      def reduce_limit(sample, pressure)
        @calm = 0.0
        return if @since_cut < CUT_INTERVAL || (pressure == :pool && @limit.nil? && sample.busy <= POOL_FLOOR)

        @high_water = @memory if pressure == :memory
        wanted = if pressure == :pool then pool_bound(sample.busy, sample.pool_waiting)
                 else [([@limit, sample.busy].compact.min * CUT).floor, 1].max
                 end
        @limit = [wanted, @limit].compact.min
        @reason = pressure
        @since_cut = 0.0
      end

      def raise_limit(sample)
        if sample.waiting > 0 || sample.busy >= @limit
          @calm = 0.0
          @limit += [(@limit * GROWTH).floor, 1].max
        elsif (@calm += sample.elapsed) >= LIFT_AFTER
          @limit = @reason = nil
        end
      end
    end
  end
end
