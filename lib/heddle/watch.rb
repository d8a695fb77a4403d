# frozen_string_literal: true

require "heddle/native_libraries"
require "heddle/own_code"

module Heddle
  # @api private
  # The thread that looks at the heartbeats of the loops, for {Preemption}, {Stalls} and {Handoff}; native, in C.
  module Watch
    # The system has refused the thread.
    class NoThreadError < Errno::EAGAIN
      include Heddle::Error

      def initialize = super("starting the watch thread")
    end

    @slice = @threshold = @handoff = nil

    class << self
      # @return [Float, nil] seconds that a fiber may compute while others wait; nil: it is not watched
      attr_reader :slice
      # @return [Float, nil] seconds after which something is a stall
      attr_reader :threshold
      # @return [Float, nil] seconds after which the connections of a loop that is blocked are handed off
      attr_reader :handoff

      def slice=(seconds)
        change(duration(seconds, "slice"), @threshold, @handoff)
      end

      def threshold=(seconds)
        change(@slice, duration(seconds, "threshold"), @handoff)
      end

      def handoff=(seconds)
        change(@slice, @threshold, duration(seconds, "time"))
      end

      private

      def change(slice, threshold, handoff)
        start(slice, threshold, handoff)
        @slice = slice
        @threshold = threshold
        @handoff = handoff
      end

      # EAGAIN is pthread_create's only: nothing else here can have it.
      def start(slice, threshold, handoff)
        Native.watch(slice, threshold, handoff)
      rescue Errno::EAGAIN
        raise NoThreadError, cause: nil
      end

      def duration(seconds, name)
        return if seconds.nil?
        return Float(seconds) if seconds.is_a?(Numeric) && seconds.between?(0.001, 3600)

        raise ArgumentError, "the #{name} is #{seconds.inspect}, but must be a number of seconds, 0.001 or more"
      end
    end
  end
end
