# frozen_string_literal: true

require "heddle/concurrency"

module Heddle
  module Concurrency
    # A fiber that waits at several channels for the first item of any of them.
    class Selection
      # Its place in the list of one channel.
      Place = Struct.new(:selection, :channel) do
        # The channel has an item for it.
        def unpark(_fiber) = selection.choose(channel)

        # The channel was closed.
        def close = selection.closed
      end

      # @param channels [Array<Channel>] open ones, none of which has an item
      def initialize(channels)
        @scheduler = Concurrency.scheduler!("Heddle::Channel.select")
        @fiber = Fiber.current
        @channels = channels
        @open = channels.size
        @chosen = nil
      end

      # @return [Array(Channel, Object), nil]
      def wait(timeout)
        @channels.each { |channel| channel.enlist(@fiber, Place.new(self, channel)) }
        begin
          Concurrency.park_while(@scheduler, timeout) { @chosen.nil? && @open.positive? }
        rescue Exception
          @chosen&.leave
          raise
        ensure
          @channels.each { |channel| channel.dismiss(@fiber) } unless @chosen
        end
        [@chosen, @chosen.take] if @chosen
      end

      # This channel has an item for it. No other may choose it then, so it leaves the other lists at once.
      def choose(channel)
        @chosen = channel
        @channels.each { |other| other.dismiss(@fiber) }
        @scheduler.unpark(@fiber)
      end

      # One of the channels was closed; the last one ends the wait.
      def closed
        @open -= 1
        @scheduler.unpark(@fiber) if @open.zero?
      end
    end
  end
end
