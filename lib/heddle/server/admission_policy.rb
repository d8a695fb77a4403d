# frozen_string_literal: true

module Heddle
  class Server
    # Limits the number of requests that run, by samples of memory and pools. At first there is no limit: only the gate
    # (ext/heddle/net/request_gate.h) decides when the next request begins. While memory is short and grows, the limit
    # is repeatedly set to a share of the running requests. When memory is sufficient again and requests wait, it
    # grows; when no request has waited for a while, it is lifted. When most requests wait for a pool, more running
    # requests would not help. Then the limit is twice the number of the requests that don't wait for it.
    #
    # It uses neither a clock nor sockets.
    class AdmissionPolicy
      # The worker's measurements at one moment.
      #
      # @!attribute elapsed [Float] seconds since the last sample
      # @!attribute memory [Integer, nil] bytes; nil: not measured
      # @!attribute pool_waiting [Integer] tasks that wait for something from a pool
      # @!attribute busy [Integer] requests that run
      # @!attribute waiting [Integer] requests that wait for their turn
      Sample = Data.define(:elapsed, :memory, :pool_waiting, :busy, :waiting)

      # Pools never bring the limit below this number: some requests use no pool.
      POOL_FLOOR = 16
      # The factor by which the limit shrinks.
      CUT = 0.8
      # Minimum seconds between two cuts, so that the first one can take effect.
      CUT_INTERVAL = 0.5
      # The share by which the limit grows with each sample.
      GROWTH = 0.1
      # Below this share of the memory's limit, the high-water mark is forgotten: then any excess over the limit counts,
      # not only growth.
      SUFFICIENT = 0.75
      # Seconds without a waiting request after which the limit is lifted.
      LIFT_AFTER = 10
      # Seconds over which samples are averaged.
      AVERAGED = 1.0
      # The smallest growth of memory that counts, as a share of the memory's limit.
      MIN_MEMORY_GROWTH = 0.005
      private_constant :CUT, :CUT_INTERVAL, :GROWTH, :SUFFICIENT, :LIFT_AFTER, :MIN_MEMORY_GROWTH

      # @return [Integer, nil] how many requests may run at once; nil: any number
      attr_reader :limit

      # @return [Symbol, nil] why the limit was last reduced: :memory or :pool; nil: there is no limit
      attr_reader :reason

      # @param memory_limit [Integer, nil] bytes; nil: any
      def initialize(memory_limit: nil)
        @memory_limit = memory_limit
        @limit = @reason = @memory = @high_water = nil
        @pool_share = 0.0
        @since_cut = Float::INFINITY
        @calm = 0.0
      end

      # @param sample [Sample]
      # @return [Integer, nil] the limit from now on
      def update(sample)
        record(sample)
        pressure = find_pressure
        if pressure then reduce_limit(sample, pressure)
        elsif @limit && !memory_short? then raise_limit(sample)
        end
        @limit
      end

      # Called when one more request waits for something from a pool. Reduces the limit at once if most requests do.
      #
      # @param busy [Integer] requests that run
      # @param pool_waiting [Integer] tasks that wait for something from a pool
      # @return [Integer, nil] the limit from now on
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

      # A process hardly ever returns memory to the system, so above the limit only growth counts.
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
