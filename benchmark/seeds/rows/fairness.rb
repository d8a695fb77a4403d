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
          counts = ask_all(server.port, size[:seconds])
          raise Child::Failed, "a connection was not answered" if counts.min.zero?

          { value: counts.max.fdiv(counts.min), answered: counts.sum.fdiv(size[:seconds]) }
        end

        private

        # IO.select returns the sockets in the order in which it got them. A client that also asks again in that order
        # favours the first of them, whatever the server does. A server may end a connection after so many requests.
        # @return [Array<Integer>] answers of each
        def ask_all(port, seconds)
          counts = Array.new(connections, 0)
          numbers = {}
          connections.times { |number| ask(numbers, number, TCPSocket.new(HTTP::Server::HOST, port)) }
          till = now + seconds
          while now < till
            ready, = IO.select(numbers.keys, nil, nil, seconds)
            ready&.shuffle&.each do |socket|
              answer = socket.readpartial(4_096)
              next unless answer.end_with?(ANSWER)

              number = numbers.delete(socket)
              counts[number] += 1
              if answer.match?(/^connection: close/i)
                socket.close
                socket = TCPSocket.new(HTTP::Server::HOST, port)
              end
              ask(numbers, number, socket)
            end
          end
          counts
        rescue SystemCallError, IOError => e
          raise Child::Failed, "a connection was closed: #{e.class}"
        ensure
          numbers.each_key(&:close)
        end

        def ask(numbers, number, socket)
          numbers[socket] = number
          socket.write(REQUEST)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
