# frozen_string_literal: true

module Heddle
  module Offload
    # A native function that has blocked a loop. It was not offloaded, because its library is denied, or because nothing
    # shows that another thread may call it.
    #
    # @!attribute function [Hash] its entry in {Offload.functions}
    # @!attribute seconds [Float] the longest time for which a call has blocked the loop
    #
    # @api private
    InPlace = Data.define(:function, :seconds) do
      # @return [Symbol] the name of the event that reports it (docs/events.md)
      def event = :blocking_call

      # @return [Hash{Symbol => Object}] the fields of the event
      def fields = { function: name, duration: seconds, reason: function[:reason] || "its library is denied" }

      # @return [String] the log line
      def to_s = Events::TABLE.fetch(event).text(fields)

      # @return [String] what the user can do
      def advice
        return "to run it on another thread, call it inside Heddle.offload { }" unless allowable?

        "if the library's calls may run on any thread (see docs/offload.md), allow it: offload_allow " \
          "#{beginning.dump} in config/heddle.rb, HEDDLE_OFFLOAD_ALLOW=#{beginning}, or " \
          "Heddle.enable :offload, allow: [#{beginning.dump}]"
      end

      private

      def name
        method = function[:method]
        "#{function[:library]} #{function[:function]}#{" (called by the method #{method})" if method}"
      end

      # No option can allow a denied library, all of libc, or the program itself.
      def allowable? = function[:trust] == :in_place && !function[:library].match?(/\A(lib(c|m|pthread)[.-]|ld-)|\A\z/)

      def beginning = "#{function[:library][/\A[^.]+/]}."
    end
  end
end
