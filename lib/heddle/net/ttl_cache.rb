# frozen_string_literal: true

module Heddle
  module Net
    # Keeps each answer for its TTL. When the cache is full, it drops the least recently used answer.
    #
    # @api private
    class TTLCache
      Entry = Struct.new(:answer, :stored, :expires, :cost)
      private_constant :Entry

      # @param size [Integer] maximum total cost of all entries
      # @param clock [#call] returns seconds of a monotonic clock, so that setting the time of day does not affect TTLs
      def initialize(size, clock)
        @size = size
        @clock = clock
        clear
      end

      # @return [Integer] the total cost of all entries
      attr_reader :taken

      # @return [Integer] number of entries
      def count = @entries.size

      # @yieldparam answer [Object]
      # @yieldparam seconds [Integer] whole seconds since the answer was stored
      # @return [Object, nil] the answer, or the block's result; nil: the key has no entry, or the entry has expired
      def fetch(key)
        now = @clock.call
        entry = @entries[key] or return
        return forget(key) if entry.expires <= now

        # The entry is inserted again, so that the Hash's first key is always the least recently used one.
        @entries[key] = @entries.delete(key)
        block_given? ? yield(entry.answer, (now - entry.stored).floor) : entry.answer
      end

      # @param ttl [Integer] seconds; with 0 the answer is not stored (RFC 1035, section 3.2.1)
      # @param cost [Integer] the part of `size` that the answer takes
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
