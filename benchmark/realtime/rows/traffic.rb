# frozen_string_literal: true

module Bench
  module Realtime
    module Rows
      # Messages or handshakes, with the CPU time of the server for each.
      class Traffic < SocketRow
        def details = %i[cpu_us p50_ms errors]

        def shown = %i[cpu_us]

        private

        # @return [Array] the answer, and µs of CPU for each of what the block counts in it
        def asked(server, ask, line)
          before = server.tree.cpu_seconds
          answer = ask.call(line)
          after = server.tree.cpu_seconds
          count = yield answer
          raise Child::Failed, "nothing came back" unless count.positive?

          [answer, before && after && ((after - before) * 1e6 / count)]
        end

        def missing(answer) = answer[:missing].zero? ? nil : "#{answer[:missing]} messages did not come"
      end

      # The time until the last of all sockets has a message. The first messages of a run take up to half as long again
      # as later ones, under most servers and with plain `send` in C, so both are measured: those after three messages,
      # and those after ten more.
      class Publish < Traffic
        BYTES = 100
        MORE = 10 # messages in between

        def unit = "ms"

        def details = %i[first_ms cpu_us p50_ms errors]

        def shown = %i[first_ms cpu_us]

        def sizes(quick:) = { connections: quick ? connections / 10 : connections, count: quick ? 3 : 15 }

        # @return [Hash] the sample
        def measure(server, contestant, size)
          warm_up(server, contestant)
          sockets(server, contestant, size[:connections]) do |ask|
            ask.call("publish 3 #{BYTES}")
            early = ask.call("publish #{size[:count]} #{BYTES}")
            ask.call("publish #{MORE} #{BYTES}")
            answer, cpu = asked(server, ask, "publish #{size[:count]} #{BYTES}") do |one|
              (one[:messages] * (size[:connections] - 1)) - one[:missing]
            end
            { value: answer[:p50_ms], first_ms: early[:p50_ms], p50_ms: answer[:p50_ms], cpu_us: cpu,
              errors: answer[:missing], note: missing(answer) }
          end
        end
      end

      # Sockets that are opened, closed and opened again.
      class Handshakes < Traffic
        def unit = "1/s"

        def better = :higher

        def details = %i[cpu_us errors]

        def sizes(quick:) = { milliseconds: quick ? 500 : 3000 }

        # @return [Hash] the sample
        def measure(server, contestant, size)
          warm_up(server, contestant)
          sockets(server, contestant, connections) do |ask|
            ask.call("handshakes 500")
            answer, cpu = asked(server, ask, "handshakes #{size[:milliseconds]}") { |one| one[:handshakes] }
            { value: answer[:rate], cpu_us: cpu, errors: answer[:failed],
              note: answer[:failed].zero? ? nil : "#{answer[:failed]} failed" }
          end
        end
      end

      # Messages that come back.
      class Echo < Traffic
        RATE = 10 # messages a second on each socket

        def unit = "ms"

        def sizes(quick:) = { connections: quick ? connections / 10 : connections, milliseconds: quick ? 1000 : 5000 }

        # @return [Hash] the sample
        def measure(server, contestant, size)
          warm_up(server, contestant)
          sockets(server, contestant, size[:connections]) do |ask|
            ask.call("echo #{RATE} 1000")
            answer, cpu = asked(server, ask, "echo #{RATE} #{size[:milliseconds]}") { |one| one[:messages] }
            { value: answer[:p99_ms], p50_ms: answer[:p50_ms], cpu_us: cpu, errors: answer[:missing],
              note: missing(answer) }
          end
        end
      end

      # What a reader costs that stops reading while messages arrive, and what the others notice of it.
      class StoppedReader < SocketRow
        BYTES = 100_000

        def unit = "MB"

        # A server that grows by a tenth of a megabyte is not ten times as good as one that grows by one.
        def compared? = false

        def details = %i[p99_ms quiet_p99_ms errors]

        def shown = %i[p99_ms]

        def sizes(quick:) = { messages: quick ? 200 : 300 }

        # The same traffic before and after: only what the stopped reader adds counts.
        #
        # @return [Hash] the sample
        def measure(server, contestant, size)
          warm_up(server, contestant)
          sockets(server, contestant, connections) do |ask|
            ask.call("publish #{size[:messages]} #{BYTES}")
            quiet = ask.call("publish #{size[:messages]} #{BYTES}")
            before = memory(server)
            ask.call("stop 1")
            answer = ask.call("publish #{size[:messages]} #{BYTES}")
            { value: [memory(server) - before, 0.0].max, p99_ms: answer[:p99_ms], quiet_p99_ms: quiet[:p99_ms],
              errors: answer[:missing] }
          end
        end
      end
    end
  end
end
