# frozen_string_literal: true

require "socket"

module Bench
  module Realtime
    module Rows
      # How late a client that stays is answered while all others leave together.
      class Departure < SocketRow
        REQUEST = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
        PAUSE = 0.001 # seconds between two requests of the client that stays
        private_constant :REQUEST, :PAUSE

        def unit = "ms"

        def details = %i[quiet_ms]

        def shown = %i[quiet_ms]

        def sizes(quick:) = { connections: quick ? connections / 10 : connections, seconds: 1.0 }

        # @return [Hash] the sample: the latest answer while they leave, and as long a time before
        def measure(server, contestant, size)
          warm_up(server, contestant)
          TCPSocket.open("127.0.0.1", server.port) do |socket|
            quiet = leaving = nil
            # At the end of the block the program that holds the sockets gets the command to end, and is waited for.
            sockets(server, contestant, size[:connections]) do
              quiet = times(socket, size[:seconds])
              leaving = Thread.new { times(socket, size[:seconds]) }
            end
            times = leaving.value
            { value: times.max, quiet_ms: quiet.max }
          end
        end

        private

        # @return [Array<Float>] milliseconds until each answer
        def times(socket, seconds)
          till = now + seconds
          times = []
          while (asked = now) < till
            socket.write(REQUEST)
            answer = socket.readpartial(4_096)
            raise Child::Failed, "the client that stays got #{answer[/.*/]}" unless answer.start_with?("HTTP/1.1 200")

            times << ((now - asked) * 1_000)
            sleep(PAUSE)
          end
          times
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
