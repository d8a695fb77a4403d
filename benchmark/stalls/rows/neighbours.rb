# frozen_string_literal: true

module Bench
  module Stalls
    module Rows
      # How long quick requests wait while other requests block.
      class Neighbours < StallsRow
        PAUSE = 0.1 # seconds between an answer and the next request
        CONNECTIONS = 50

        # @param figure [Symbol] :p99 or :max
        # @param fresh [Boolean] whether half of the connections are opened only when the other requests block
        def initialize(figure: :p99, fresh: false, **)
          super(**)
          @figure = figure
          @fresh = fresh
        end

        def unit = "ms"

        def details = %i[p50_ms p99_ms]

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          clients = crowd.clients(@fresh ? CONNECTIONS / 2 : CONNECTIONS).each { |client| client.ask("/hello") }
          crowd.await(clients)
          block(crowd, size[:blocked_ms])
          clients += crowd.clients(CONNECTIONS / 2) if @fresh
          took = crowd.repeat(clients, "/hello", pause: PAUSE, seconds: (size[:blocked_ms] / 1_000.0) / 2)
          sample(took.map { |seconds| seconds * 1_000 }.sort)
        end

        private

        def sample(took)
          p50, p99 = [0.5, 0.99].map { |share| took[(took.size * share).ceil - 1] }
          { value: @figure == :max ? took.last : p99, p50_ms: p50, p99_ms: p99 }
        end
      end
    end
  end
end
