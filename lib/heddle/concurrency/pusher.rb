# frozen_string_literal: true

require "heddle/concurrency/parked"

module Heddle
  module Concurrency
    # A fiber that waits at a channel, with an item, for room.
    class Pusher < Parked
      def initialize(what, item)
        super(what)
        @item = item
        @outcome = nil
      end

      # The channel has taken the item.
      #
      # @return the item
      def accept
        @outcome = :accepted
        wake
        @item
      end

      # The channel takes no items any more.
      def refuse
        @outcome = :refused
        wake
      end

      def accepted? = @outcome == :accepted

      def refused? = @outcome == :refused

      private

      def waiting? = @outcome.nil?
    end
  end
end
