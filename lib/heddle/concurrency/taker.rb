# frozen_string_literal: true

require "heddle/concurrency/parked"

module Heddle
  module Concurrency
    # A fiber that waits to be given something.
    class Taker < Parked
      # @return what it was given
      attr_reader :item

      # @return [Boolean] was it given something?
      def given? = @given

      # @param what [String] what needs a loop, for the error outside of one
      def initialize(what)
        super
        @item = nil
        @given = @refused = false
      end

      # Ends its waiting.
      def give(item)
        @given = true
        @item = item
        wake
      end

      # Ends its waiting: it gets nothing.
      def refuse
        @refused = true
        wake
      end

      private

      def waiting? = !@given && !@refused
    end
  end
end
