# frozen_string_literal: true

require_relative "../ttl_cache"

module Heddle
  module Net
    module DNS
      # Keeps answers of name servers for their TTL, within the given limits, and absent names for the time in the
      # zone's SOA (RFC 2308). The size in bytes is limited: the least recently used answer is dropped first.
      class Cache < TTLCache
        # Seconds. RFC 9520, section 3.2, requires that a failure is kept for at least a second.
        MAX_TTL = 86_400
        FAILURE_TTL = 1
        # Seconds. RFC 2308, section 5, recommends one to three hours for absent names.
        MAX_NEGATIVE_TTL = 10_800
        # Bytes of an entry in addition to its message.
        OVERHEAD = 200
        # Bytes of a message's Ruby objects, for each byte of the message.
        FACTOR = 8

        # @param message [Message]
        # @return [Integer, nil] seconds for which a cache may keep that a name, or a type of it, does not exist (RFC
        #   2308, section 5): the lowest of the SOA's own TTL, its MINIMUM and MAX_NEGATIVE_TTL. nil: there is no SOA
        def self.negative_ttl(message)
          soa = message.authorities.find { |record| record.type == :SOA } or return
          [soa.ttl, soa.data.minimum, MAX_NEGATIVE_TTL].min
        end

        # @param size [Integer] bytes, about
        # @param clock [#call] seconds of a monotonic clock
        # @param min_ttl [Integer] seconds that every answer is kept at least
        # @param max_ttl [Integer] seconds that every answer is kept at most
        def initialize(size, clock, min_ttl: 0, max_ttl: MAX_TTL)
          super(size, clock)
          @min_ttl = min_ttl
          @max_ttl = max_ttl
        end

        # @return [Message, StandardError, nil] with TTLs as they are now
        def fetch(key) = super { |answer, seconds| aged(answer, seconds) }

        # @param key [Object]
        # @param answer [Message, StandardError]
        def store(key, answer)
          super(key, answer, ttl_of(answer),
                OVERHEAD + (answer.is_a?(Message) ? answer.encode.bytesize * FACTOR : 0))
        end

        private

        def ttl_of(answer)
          return FAILURE_TTL unless answer.is_a?(Message)

          records = answer.answers + answer.authorities + answer.additionals
          ttls = records.map(&:ttl)
          ttls << (Cache.negative_ttl(answer) or return 0) if answer.answers.empty? || answer.rcode == :NXDOMAIN
          ttls.min.clamp(@min_ttl, @max_ttl)
        end

        def aged(answer, seconds)
          return answer unless answer.is_a?(Message) && seconds.positive?

          copy = Message.new(answer.id, answer.flags, answer.edns)
          %i[answers authorities additionals].each do |section|
            records = answer.public_send(section)
            copy.public_send(section).concat(records.map { |one| one.with(ttl: [one.ttl - seconds, 0].max) })
          end
          copy.questions.concat(answer.questions)
          copy
        end
      end
    end
  end
end
