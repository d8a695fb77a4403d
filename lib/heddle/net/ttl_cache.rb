# frozen_string_literal: true

module Heddle
  module Net
    # Keeps answers, each for its TTL. The size is limited: the least recently used answer is dropped first.
    #
    # @api private
    class TTLCache
      Entry = Struct.new(:answer, :stored, :expires, :cost)
      private_constant :Entry

      # @param size [Integer] how much all entries may cost together
      # @param clock [#call] seconds of a monotonic clock: setting the time of day must not make answers live longer
      def initialize(size, clock)
        @size = size
        @clock = clock
        clear
      end

      # @return [Integer] the cost of all entries together
      attr_reader :taken

      # @return [Integer]
      def count = @entries.size

      # @yieldparam answer [Object]
      # @yieldparam seconds [Integer] for which it was kept
      # @return [Object, nil] the answer, or the block's value; nil: there is none
      def fetch(key)
        now = @clock.call
        entry = @entries[key] or return
        return forget(key) if entry.expires <= now

        # A Hash keeps the order of insertion, so that its first key is the least recently used.
        @entries[key] = @entries.delete(key)
        block_given? ? yield(entry.answer, (now - entry.stored).floor) : entry.answer
      end

      # @param ttl [Integer] seconds; with 0 nothing is kept (RFC 1035, section 3.2.1)
      def store(key, answer, ttl, cost = 1)
        return unless ttl.positive? && cost <= @size

        now = @clock.call
        forget(key)
        forget(@entries.each_key.first) while @taken + cost > @size
        @entries[key] = Entry.new(answer, now, now + ttl, cost)
        @taken += cost
      end

      def clear
        @entries = {}
        @taken = 0
      end

      private

      def forget(key)
        entry = @entries.delete(key) or return
        @taken -= entry.cost
        nil
      end
    end
  end
end
