# frozen_string_literal: true

require "heddle/arguments"
require "heddle/token_bucket"
require_relative "../networks"

module Heddle
  module Net
    module DNS
      # Limits the UDP responses to each network. Source addresses of datagrams can be forged, so an unlimited server
      # could be used to amplify attacks. Beyond the limit, every second response is dropped. The others are truncated,
      # so that a real client asks again over TCP. This is BIND's "response rate limiting" with slip 2.
      class RateLimit
        # Maximum number of networks with a {Bucket}; the oldest bucket is dropped first.
        NETWORKS = 10_000
        # Number of leading address bytes that identify a network: /24 and /56.
        IPV4_PREFIX = 3
        IPV6_PREFIX = 7

        # The limit of a network, and the number of responses beyond it.
        Bucket = Struct.new(:limit, :over)
        private_constant :Bucket

        # @param rate [Integer] responses per second and network
        # @param exempt [Networks] networks without a limit
        def initialize(rate, exempt:)
          @rate = Arguments.count("rate", rate, 1)
          @exempt = exempt
          @buckets = {}
        end

        # @param address [String] the client's address, 4 or 16 bytes
        # @return [Symbol, nil] what to do with the response: nil (send it), `:truncate` or `:drop`
        def judge(address)
          return nil if @exempt.cover?(address)

          bucket = bucket_of(address.byteslice(0, address.bytesize == 4 ? IPV4_PREFIX : IPV6_PREFIX))
          return nil if bucket.limit.take?

          (bucket.over += 1).odd? ? :drop : :truncate
        end

        # @return [Integer] number of networks with a bucket
        def size = @buckets.size

        private

        def bucket_of(network)
          bucket = @buckets[network]
          return bucket if bucket

          @buckets.shift if @buckets.size >= NETWORKS
          @buckets[network] = Bucket.new(TokenBucket.new(@rate, @rate), 0)
        end
      end
    end
  end
end
