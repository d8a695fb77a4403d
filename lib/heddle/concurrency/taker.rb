# frozen_string_literal: true

require "heddle/concurrency/parked"

module Heddle
  module Concurrency
    # A fiber that waits to be given something: by a pool, by a channel, or by any of several.
    class Taker < Parked
      # @return who gave it something; nil while nobody has
      attr_reader :giver

      # @return what it was given
      attr_reader :item

      # @param channels [Array<Channel>, nil] the channels that list it, when these are several
      def initialize(what, channels = nil)
        super(what)
        @channels = channels
        @open = channels&.size
        @giver = @item = nil
      end

      # Ends its waiting. Nobody else may give to it then, so it leaves the other lists at once.
      def give(giver, item)
        @channels&.each { |channel| channel.dismiss(self) }
        @giver = giver
        @item = item
        wake
      end

      # One of the channels that it waits at was closed; the last one ends its waiting.
      def closed
        @open -= 1 if @open
        wake unless @open&.positive?
      end
    end
  end
end
