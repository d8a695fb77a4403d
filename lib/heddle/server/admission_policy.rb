# frozen_string_literal: true

module Heddle
  class Server
    # Says how many requests may run at once, from samples of what the worker bears. While all is well, any number may.
    # When the loop is late, or memory short, the limit comes down to a share of what runs, again and again; while all
    # is well and requests wait, it grows; when no request has waited for a while, it is lifted. Where most requests
    # wait for something from a pool, more of them would bring nothing: the limit stays at twice what doesn't wait.
    #
    # Knows no clock and no socket.
    class AdmissionPolicy
      # The worker's measurements at one moment.
      #
      # @!attribute elapsed [Float] seconds since the last sample
      # @!attribute lag [Float] seconds by which the loop was late for this one
      # @!attribute memory [Integer, nil] bytes; nil: not looked at
      # @!attribute pool_waiting [Integer] tasks that wait for something from a pool
      # @!attribute busy [Integer] requests that run
      # @!attribute waiting [Integer] requests that wait for their turn
      Sample = Data.define(:elapsed, :lag, :memory, :pool_waiting, :busy, :waiting)

      # Seconds by which the loop may be late before fewer requests run at once: major collections of garbage take less,
      # and people notice more.
      LAG_TARGET = 0.25
      # As many requests may always run: fewer would not make a late loop any faster.
      FLOOR = 16
      # The factor by which the limit shrinks.
      CUT = 0.8
      # Seconds until it may come down again, so that the last time can have shown.
      CUT_INTERVAL = 0.5
      # By what share it grows with each sample.
      GROWTH = 0.1
      # Below this share of a target it grows; between that and the target it stays.
      WELL = 0.75
      # Seconds without a waiting request after which there is no limit any more.
      CALM = 10
      # Seconds over which samples are averaged.
      MEMORY_OF_SAMPLES = 1.0
      # The growth of memory that counts, as a share of its limit.
      NOTABLE = 0.005
      private_constant :CUT, :CUT_INTERVAL, :GROWTH, :WELL, :CALM, :MEMORY_OF_SAMPLES, :NOTABLE

      # @return [Integer, nil] how many requests may run at once; nil: any number
      attr_reader :limit

      # @return [Float] seconds by which the loop was late lately
      attr_reader :lag

      # @return [Symbol, nil] what the limit came down for last: :lag, :memory or :pool; nil: there is none
      attr_reader :reason

      # @param lag_target [Numeric] seconds
      # @param memory_limit [Integer, nil] bytes; nil: any
      def initialize(lag_target: LAG_TARGET, memory_limit: nil)
        @lag_target = lag_target
        @memory_limit = memory_limit
        @limit = @reason = @memory = @high_water = nil
        @lag = @pool_share = 0.0
        @since_cut = Float::INFINITY
        @calm = 0.0
      end

      # @param sample [Sample]
      # @return [Integer, nil] the limit from now on
      def look(sample)
        take_in(sample)
        pressure = pressure_of(sample)
        if pressure then come_down(sample, pressure)
        elsif @limit && well? then go_up(sample)
        end
        @limit
      end

      # When one more request waits for something from a pool. Brings the limit down at once where most of them do.
      #
      # @param busy [Integer] requests that run
      # @param pool_waiting [Integer] tasks that wait for something from a pool
      # @return [Integer, nil] the limit from now on
      def crowd(busy, pool_waiting)
        return @limit if busy <= FLOOR || pool_waiting * 2 <= busy

        bound = [2 * (busy - pool_waiting), FLOOR].max
        return @limit if @limit && @limit <= bound

        @calm = @since_cut = 0.0
        @reason = :pool
        @limit = bound
      end

      private

      def take_in(sample)
        weight = 1 - Math.exp(-sample.elapsed / MEMORY_OF_SAMPLES)
        @lag += (sample.lag - @lag) * weight
        share = sample.busy > 0 ? [sample.pool_waiting.fdiv(sample.busy), 1.0].min : 0.0
        @pool_share += (share - @pool_share) * weight
        @since_cut += sample.elapsed
        @memory = sample.memory if sample.memory
        @high_water = nil if @high_water && @memory < @memory_limit * WELL
      end

      # One long turn is not enough, and neither is one that is over.
      def pressure_of(sample)
        if @lag > @lag_target && sample.lag > @lag_target then :lag
        elsif memory_grows? then :memory
        elsif @pool_share > 0.5 then :pool
        end
      end

      # A process hardly ever gives memory back, so above the limit only growth counts.
      def memory_grows?
        memory_short? && @memory > (@high_water || 0) + (@memory_limit * NOTABLE)
      end

      def memory_short? = @memory_limit && @memory && @memory > @memory_limit

      def well? = @lag < @lag_target * WELL && !memory_short?

      def come_down(sample, pressure)
        @calm = 0.0
        return if @since_cut < CUT_INTERVAL

        @high_water = @memory if pressure == :memory
        present = [@limit, sample.busy].compact.min
        return if present <= FLOOR && @limit.nil?

        wanted = pressure == :pool ? 2 * [sample.busy - sample.pool_waiting, 0].max : (present * CUT).floor
        @limit = [[wanted, FLOOR].max, @limit].compact.min
        @reason = pressure
        @since_cut = 0.0
      end

      def go_up(sample)
        if sample.waiting > 0 || sample.busy >= @limit
          @calm = 0.0
          @limit += [(@limit * GROWTH).floor, 1].max
        elsif (@calm += sample.elapsed) >= CALM
          @limit = @reason = nil
        end
      end
    end
  end
end
