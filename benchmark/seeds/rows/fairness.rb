# frozen_string_literal: true

require "socket"

module Bench
  module Seeds
    module Rows
      # Eight connections that ask again as soon as they have their answer, of an application that computes: how many
      # times as many answers the most favoured one gets as the least.
      class Fairness < HTTP::Rows::HTTPRow
        REQUEST = "GET /cpu/15 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ANSWER = "610\n"
        private_constant :REQUEST, :ANSWER

        def initialize
          super(key: "fairness", title: "8 busy connections, an application that computes: most answers to least",
                connections: 8, goals: [Goal.new(at_most: 1.05, unit: "×")])
        end

        def unit = "×"

        def details = %i[answered]

        def sizes(quick:) = { seconds: quick ? 1 : 5 }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check("/cpu/15", expected: ANSWER)
          sockets = Array.new(connections) { TCPSocket.new(HTTP::Server::HOST, server.port) }
          counts = ask_all(sockets, size[:seconds])
          raise Child::Failed, "a connection was not answered" if counts.min.zero?

          { value: counts.max.fdiv(counts.min), answered: counts.sum.fdiv(size[:seconds]) }
        ensure
          sockets&.each(&:close)
        end

        private

        # @return [Array<Integer>] answers of each
        def ask_all(sockets, seconds)
          counts = sockets.to_h { |socket| [socket, 0] }
          sockets.each { |socket| socket.write(REQUEST) }
          till = now + seconds
          while now < till
            ready, = IO.select(sockets, nil, nil, seconds)
            ready&.each do |socket|
              next unless socket.readpartial(4_096).end_with?(ANSWER)

              counts[socket] += 1
              socket.write(REQUEST)
            end
          end
          counts.values
        rescue SystemCallError, IOError => e
          raise Child::Failed, "a connection was closed: #{e.class}"
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
