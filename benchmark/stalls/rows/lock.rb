# frozen_string_literal: true

require_relative "../services"

module Bench
  module Stalls
    module Rows
      # Two requests take the lock of one file, each for a second: how long until both are answered.
      class Lock < StallsRow
        REQUESTS = 2
        LIMIT = 15 # seconds until it is clear that no holder releases the lock

        def unit = "s"

        def around(_quick) = Services.during(:lock) { |environment| yield({ environment: }) }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          began = Crowd.now
          clients = crowd.ask("/#{@kind}/#{size[:light_ms]}", REQUESTS)
          crowd.await(clients, limit: LIMIT)
          { value: clients.map(&:answered).max - began }
        end
      end
    end
  end
end
