# frozen_string_literal: true

require "heddle/native_libraries"
require "heddle/own_code"

module Heddle
  # @api private
  # The native thread that samples the heartbeats of the loops, for {Preemption}, {Stalls} and {Handoff}.
  module WatchThread
    # Raised if the system can't start the thread.
    class NoThreadError < Errno::EAGAIN
      include Heddle::Error

      def initialize = super("starting the watch thread")
    end

    # The settings of the thread, and the name of each in error messages.
    NAMES = { slice: "slice", threshold: "threshold", handoff: "time" }.freeze
    private_constant :NAMES

    @seconds = NAMES.transform_values { nil }

    class << self
      # @return [Float, nil] seconds for which a fiber may compute while others are ready; nil: preemption is off
      def slice = @seconds[:slice]

      # @return [Float, nil] a tick that takes at least this many seconds is a stall; nil: stall reports are off
      def threshold = @seconds[:threshold]

      # @return [Float, nil] seconds after which the connections of a blocked loop are handed off; nil: handoff is off
      def handoff = @seconds[:handoff]

      NAMES.each { |name, word| define_method(:"#{name}=") { |seconds| change(name, duration(seconds, word)) } }

      private

      # EAGAIN means that pthread_create has failed.
      def change(name, value)
        seconds = @seconds.merge(name => value)
        Native.watch(*seconds.values)
        @seconds = seconds
      rescue Errno::EAGAIN
        raise NoThreadError, cause: nil
      end

      def duration(seconds, name)
        return if seconds.nil?
        return Float(seconds) if seconds.is_a?(Numeric) && seconds.between?(0.001, 3600)

        raise ArgumentError, "the #{name} is #{seconds.inspect}, but must be from 0.001 to 3600 seconds"
      end
    end
  end
end
