# frozen_string_literal: true

require_relative "../services"

module Bench
  module Stalls
    module Rows
      # Fifty requests wait in a library, each on a connection of its own that is there already: how long until all are
      # answered.
      class WaitingLibraries < StallsRow
        REQUESTS = 50
        WARM_UP = 20 # milliseconds that each waits for at first

        # @param service [Symbol] what they wait for, see {Services}
        def initialize(service:, **)
          super(**)
          @service = service
        end

        def unit = "s"

        def around(_quick, &) = Services.during(@service) { |environment| yield({ environment: }) }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          crowd.await(crowd.ask("/#{@kind}/#{WARM_UP}", REQUESTS))
          clients = crowd.clients(REQUESTS)
          began = Crowd.now
          clients.each { |client| client.ask("/#{@kind}/#{size[:light_ms]}") }
          crowd.await(clients)
          { value: clients.map(&:answered).max - began }
        end
      end
    end
  end
end
