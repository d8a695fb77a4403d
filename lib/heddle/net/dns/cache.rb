# frozen_string_literal: true

require_relative "../ttl_cache"

module Heddle
  module Net
    module DNS
      # Keeps answers of name servers for their TTL, within `min_ttl` and `max_ttl`. The zone's SOA record determines
      # for how long the absence of a name is kept (RFC 2308). When the cache is full, it drops the least recently used
      # answer.
      class Cache < TTLCache
        MAX_TTL = 86_400 # seconds
        # Seconds. RFC 9520, section 3.2, requires caching of failures for at least one second.
        FAILURE_TTL = 1
        # Seconds. RFC 2308, section 5, recommends one to three hours for absent names.
        MAX_NEGATIVE_TTL = 10_800
        # Estimated bytes of an entry without its message.
        OVERHEAD = 200
        # Estimated bytes of Ruby objects for each byte of the encoded message.
        FACTOR = 8

        # @param message [Message]
        # @return [Integer, nil] seconds for which a cache may keep the answer that a name or type does not exist: the
        #   minimum of the SOA's TTL, its MINIMUM field and MAX_NEGATIVE_TTL (RFC 2308, section 5). nil: the message has
        #   no SOA
        def self.negative_ttl(message)
          soa = message.authorities.find { |record| record.type == :SOA } or return
          [soa.ttl, soa.data.minimum, MAX_NEGATIVE_TTL].min
        end

        # @param size [Integer] approximate maximum size in bytes
        # @param clock [#call] returns seconds of a monotonic clock
        # @param min_ttl [Integer] minimum seconds to keep an answer
        # @param max_ttl [Integer] maximum seconds to keep an answer
        def initialize(size, clock, min_ttl: 0, max_ttl: MAX_TTL)
          super(size, clock)
          @min_ttl = min_ttl
          @max_ttl = max_ttl
        end

        # @return [Message, StandardError, nil] the answer, with its remaining TTLs; an error if the lookup failed;
        #   nil: not in the cache
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
