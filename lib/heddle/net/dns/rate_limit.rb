# frozen_string_literal: true

require_relative "../networks"

module Heddle
  module Net
    module DNS
      # Limits the responses over UDP that one network gets, because the address of a datagram can be forged: without a
      # limit a server is an amplifier for attacks on others. Beyond the limit every second response is truncated, so
      # that a real client asks again over TCP, and the others are not sent (BIND's "response rate limiting", slip 2).
      class RateLimit
        # Maximum number of networks that are remembered; the oldest one is dropped first.
        NETWORKS = 10_000
        # Bytes of an address that make a network: /24 and /56.
        IPV4_PREFIX = 3
        IPV6_PREFIX = 7

        Bucket = Struct.new(:tokens, :time, :over)
        private_constant :Bucket

        # @param rate [Integer] responses a second
        # @param exempt [Networks]
        # @param clock [#call] seconds of a monotonic clock
        def initialize(rate, exempt:, clock: nil)
          unless rate.is_a?(Integer) && rate.positive?
            raise ArgumentError, "rate is #{rate.inspect}, but must be 1 or more responses a second, or nil"
          end

          @rate = rate
          @exempt = exempt
          @clock = clock || -> { MonotonicClock.now }
          @buckets = {}
        end

        # @param address [String] the client's, in 4 or 16 bytes
        # @return [Symbol, nil] nil: send the response; `:truncate`; `:drop`
        def judge(address)
          return nil if @exempt.cover?(address)

          bucket = refill(address.byteslice(0, address.bytesize == 4 ? IPV4_PREFIX : IPV6_PREFIX))
          if bucket.tokens >= 1
            bucket.tokens -= 1
            return nil
          end

          (bucket.over += 1).odd? ? :drop : :truncate
        end

        # @return [Integer] networks that are remembered
        def size = @buckets.size

        private

        def refill(network)
          now = @clock.call
          bucket = @buckets[network]
          unless bucket
            @buckets.shift if @buckets.size >= NETWORKS
            return @buckets[network] = Bucket.new(@rate, now, 0)
          end

          bucket.tokens = [bucket.tokens + ((now - bucket.time) * @rate), @rate].min
          bucket.time = now
          bucket
        end
      end
    end
  end
end
