# frozen_string_literal: true

module Heddle
  module Offload
    # A native function that blocked a loop, because nothing shows that another thread may call it.
    #
    # @!attribute function [Hash] its entry in {Offload.functions}
    # @!attribute seconds [Float] the longest time for which it blocked the loop
    #
    # @api private
    InPlace = Data.define(:function, :seconds) do
      # @return [Symbol] the name of its event (docs/events.md)
      def event = :blocking_call

      # @return [Hash{Symbol => Object}] the fields of the event
      def fields = { function: name, duration: seconds, reason: function[:reason] || "its library is denied" }

      # @return [String] a line for a log
      def to_s = Events::TABLE.fetch(event).text(fields)

      # @return [String] what to do about it
      def advice
        return "Heddle.offload { } runs Ruby code around it on another thread" unless allowable?

        "if its calls may run on any thread (docs/offload.md says how to find out), allow it: " \
          "offload_allow #{beginning.dump} in config/heddle.rb, HEDDLE_OFFLOAD_ALLOW=#{beginning}, or " \
          "Heddle.enable :offload, allow: [#{beginning.dump}]"
      end

      private

      def name
        method = function[:method]
        "#{function[:library]} #{function[:function]}#{" (called by the method #{method})" if method}"
      end

      # Denied libraries, and libc as a whole, can't be allowed by an option.
      def allowable? = function[:trust] == :in_place && !function[:library].match?(/\A(lib(c|m|pthread)[.-]|ld-)|\A\z/)

      def beginning = "#{function[:library][/\A[^.]+/]}."
    end
  end
end
