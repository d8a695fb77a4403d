# frozen_string_literal: true

module Bench
  module Stalls
    module Rows
      # What a native call costs that gives up Ruby's lock and does nothing, in a request.
      class CallCost < Row
        attr_reader :key, :title, :goals

        # @param kind [String] of the application's
        def initialize(key:, title:, kind:, goals:)
          super()
          @key = key
          @title = title
          @kind = kind
          @goals = goals
        end

        def processes = 1

        def unit = "µs"

        # A server that offloads pays for it: that is no matter of better or worse.
        def compared? = false

        def sizes(quick:) = { calls: quick ? 2_000 : 20_000 }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          asked = crowd.ask("/#{@kind}/#{size[:calls]}", 1)
          crowd.await(asked)
          { value: asked.first.body.to_f }
        end
      end
    end
  end
end
