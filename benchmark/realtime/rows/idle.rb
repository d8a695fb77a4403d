# frozen_string_literal: true

module Bench
  module Realtime
    module Rows
      # What sockets cost that are open and silent, above the server as it was before they came.
      class Idle < SocketRow
        def unit = "kB"

        def details = %i[empty_mb]

        def shown = []

        def sizes(quick:) = { connections: quick ? connections / 10 : connections }

        # @return [Hash] the sample
        def measure(server, contestant, size)
          warm_up(server, contestant)
          empty = memory(server)
          sockets(server, contestant, size[:connections]) do
            { value: (memory(server) - empty) * 1e6 / 1024 / size[:connections], empty_mb: empty }
          end
        end
      end
    end
  end
end
