# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Answers by full name, each until its time is over. Bounded: the name not asked for the longest goes first.
      #
      # @api private
      class Cache
        Entry = Struct.new(:addresses, :expires)
        private_constant :Entry

        # @param size [Integer] names
        # @param clock [#call] seconds of a monotonic clock: setting the time of day must not make answers live longer
        def initialize(size, clock)
          @size = size
          @clock = clock
          @entries = {}
        end

        # @return [Array<String>, nil] an empty Array for a name that is known not to exist
        def fetch(name)
          entry = @entries.delete(name) or return nil
          return nil if entry.expires <= @clock.call

          # A Hash keeps the order of insertion, so that its first key is the least recently used.
          @entries[name] = entry
          entry.addresses
        end

        # @param ttl [Integer] seconds; with 0 nothing is kept (RFC 1035, section 3.2.1)
        def store(name, addresses, ttl)
          return unless ttl.positive? && @size.positive?

          @entries.delete(name)
          @entries.shift while @entries.size >= @size
          @entries[name] = Entry.new(addresses, @clock.call + ttl)
        end

        def size = @entries.size

        def clear
          @entries.clear
        end
      end
    end
  end
end
