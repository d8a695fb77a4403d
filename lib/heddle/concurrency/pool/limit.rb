# frozen_string_literal: true

require "etc"

module Heddle
  class Pool
    # A limit that the application has chosen.
    #
    # @api private
    class FixedLimit
      # @return [Integer] how many resources there may be now
      attr_reader :value

      def initialize(value)
        @value = value
      end

      # @return [Integer] the maximum number of resources
      def max = @value

      # @api private
      def returned(_held) = nil

      # @api private
      def check(_now) = false

      # @api private
      def refused(_size) = nil
    end

    # A limit that adapts: it grows by a quarter as long as tasks wait and the resource answers as fast as it ever did,
    # and shrinks by a quarter when the resource answers slower. While the limit is 1, tasks don't slow each other down.
    # The time measured then is the new best time, even if an earlier one was better.
    #
    # @api private
    class AdaptiveLimit
      # Seconds between two checks.
      POLL_INTERVAL = 0.1
      # How much longer than at its best the resource may take.
      TOLERANCE = 1.5
      # Seconds. A shorter best time counts as this one, because other work on the machine distorts short times.
      NOISE = 0.001
      private_constant :TOLERANCE, :NOISE

      # @return [Integer] how many resources there may be now
      attr_reader :value

      # @return [Integer] the maximum number of resources
      attr_reader :max

      def initialize(max)
        @max = max
        @value = [(Etc.nprocessors * 2) + 1, max].min
        @times = []
        @best = Float::INFINITY
        @checked = nil
      end

      # Called when a resource was released.
      # @param held [Float] seconds for which it was used
      def returned(held) = @times << held

      # Called while tasks wait.
      # @param now [Float]
      # @return [Boolean] whether the limit has risen
      def check(now)
        @checked ||= now
        return false if now - @checked < POLL_INTERVAL * 0.9

        @checked = now
        before = @value
        @value = slower? ? [@value * 3 / 4, 1].max : [@value + [@value / 4, 1].max, @max].min
        @value > before
      end

      # Called when another resource could not be made.
      # @param size [Integer] how many there are
      def refused(size) = @value = size.clamp(1, @max)

      private

      def slower?
        return false if @times.empty? # no resource was released since the last check

        median = @times.sort[@times.size / 2]
        @times.clear
        @best = @value == 1 ? median : [@best, median].min
        median > [@best, NOISE].max * TOLERANCE
      end
    end
  end
end
