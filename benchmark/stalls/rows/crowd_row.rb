# frozen_string_literal: true

module Bench
  module Stalls
    module Rows
      # Some requests block for 10 s, then fifty come that sleep for 1 s: how long until all of those are answered.
      class CrowdRow < StallsRow
        REQUESTS = 50

        def unit = "s"

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          block(crowd, size[:blocked_ms])
          began = Crowd.now
          others = crowd.ask("/sleep/#{size[:light_ms]}", REQUESTS)
          crowd.await(others)
          { value: others.map(&:answered).max - began }
        end
      end
    end
  end
end
