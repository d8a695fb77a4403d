# frozen_string_literal: true

require "rbconfig"
require "heddle/native"

module Heddle
  # @api private
  # The thread that looks at the heartbeats of the loops, for {Preemption} and {Stalls}; it is native, and in C.
  module Watch
    @slice = @threshold = nil

    class << self
      # @return [Float, nil] seconds that a fiber may compute while others wait; nil: it is not watched
      attr_reader :slice
      # @return [Float, nil] seconds after which something is a stall
      attr_reader :threshold

      def slice=(seconds)
        change(duration(seconds, "slice"), @threshold)
      end

      def threshold=(seconds)
        change(@slice, duration(seconds, "threshold"))
      end

      private

      def change(slice, threshold)
        prepare
        Native.watch(slice, threshold)
        @slice = slice
        @threshold = threshold
      end

      # Own code is written for switches where it waits, and nowhere else. The demo is an application like any other.
      def prepare
        return if @prepared

        own = [__dir__, File.realpath(__dir__)].uniq.flat_map { |folder| own_paths(folder) }
        Native.own_code_is(own, ["<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/"])
        @prepared = true
      end

      def own_paths(folder)
        names = Dir.children(folder) - %w[cli native]
        names.map { |name| File.join(folder, name.end_with?(".rb") ? name : "#{name}/") }
      end

      def duration(seconds, name)
        return if seconds.nil?
        return Float(seconds) if seconds.is_a?(Numeric) && seconds.between?(0.001, 3600)

        raise ArgumentError, "the #{name} is #{seconds.inspect}, but must be a number of seconds, 0.001 or more"
      end
    end
  end
end
