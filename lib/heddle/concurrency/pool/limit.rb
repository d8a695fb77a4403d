# frozen_string_literal: true

require "etc"

module Heddle
  class Pool
    # A limit that the application has chosen.
    #
    # @api private
    class FixedLimit
      # @return [Integer] the current maximum number of resources
      attr_reader :value

      def initialize(value)
        @value = value
      end

      # @return [Integer] the highest possible value
      def max = @value

      # @api private
      def returned(_held) = nil

      # @api private
      def check(_now) = nil

      # @api private
      def refused(_size) = nil
    end

    # A limit that adapts to the speed of the resources: the median time for which a resource is in use. While tasks
    # wait, the limit is checked at an interval. It shrinks by a quarter if the median is now much longer than the best
    # (shortest) median so far; otherwise it grows by a quarter. While the limit is 1, tasks can't slow each other down.
    # So a median measured then becomes the new best one, even if an earlier median was shorter.
    #
    # @api private
    class AdaptiveLimit
      # Seconds between two checks while tasks wait.
      POLL_INTERVAL = 0.1
      # A median of more than this multiple of the best median counts as slower.
      TOLERANCE = 1.5
      # Seconds. A shorter best median counts as this time, because other work on the machine distorts short times.
      NOISE = 0.001
      private_constant :TOLERANCE, :NOISE

      # @return [Integer] the current maximum number of resources
      attr_reader :value

      # @return [Integer] the highest possible value
      attr_reader :max

      def initialize(max)
        @max = max
        @value = [(Etc.nprocessors * 2) + 1, max].min
        @times = []
        @best = Float::INFINITY
        @checked = nil
      end

      # Called when a resource was released.
      # @param held [Float] seconds for which the resource was in use
      def returned(held) = @times << held

      # Called while tasks wait.
      # @param now [Float] in seconds of CLOCK_MONOTONIC
      def check(now)
        @checked ||= now
        return if now - @checked < POLL_INTERVAL * 0.9

        @checked = now
        @value = slower? ? [@value * 3 / 4, 1].max : [@value + [@value / 4, 1].max, @max].min
      end

      # Called when a resource could not be made.
      # @param size [Integer] current number of resources
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
