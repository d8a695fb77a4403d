# frozen_string_literal: true

require "socket"

module Bench
  module Seeds
    module Rows
      # Streaming bodies that write a line a second, many at once: how far the time between two lines of a client is
      # from a second, at worst.
      class Lines < HTTP::Rows::HTTPRow
        REQUEST = "GET /lines HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        LIMIT = 20 # seconds for all lines
        private_constant :REQUEST, :LIMIT

        # When a client asked, and when each piece with a line came.
        Client = Struct.new(:socket, :asked, :came)
        private_constant :Client

        def initialize
          super(key: "lines", title: "1,000 streams of a line a second: the time between two lines is off by, at most",
                connections: 1_000, goals: [Goal.new(at_most: 50, unit: "ms")])
        end

        def unit = "ms"

        def details = %i[first_line_ms cpu_us]

        def shown = %i[first_line_ms]

        def excludes(contestant)
          return "runs as many requests at once as it has threads" if contestant.key.match?(/puma|iodine/)

          super
        end

        def sizes(quick:) = { connections: quick ? 50 : connections }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          before = server.tree.cpu_seconds
          clients = Array.new(size[:connections]) { ask(server.port) }
          read_all(clients)
          cpu = server.tree.cpu_seconds - before
          gaps = clients.flat_map { |client| client.came.each_cons(2).map { |one, two| two - one } }
          first = clients.map { |client| client.came.first - client.asked }.max
          { value: gaps.map { |gap| (gap - 1).abs }.max * 1_000, first_line_ms: first * 1_000,
            cpu_us: cpu * 1e6 / (clients.size * Application::LINES) }
        ensure
          clients&.each { |client| client.socket.close }
        end

        private

        def ask(port)
          socket = TCPSocket.new(HTTP::Server::HOST, port)
          socket.write(REQUEST)
          Client.new(socket, now, [])
        end

        def read_all(clients)
          waiting = clients.to_h { |client| [client.socket, client] }
          till = now + LIMIT
          until waiting.empty?
            ready, = IO.select(waiting.keys, nil, nil, 1)
            raise Child::Failed, "#{waiting.size} streams have not ended after #{LIMIT} s" if now > till

            ready&.each { |socket| waiting.delete(socket) unless read(waiting.fetch(socket)) }
          end
          wrong = clients.count { |client| client.came.size != Application::LINES }
          raise Child::Failed, "#{wrong} streams did not have #{Application::LINES} lines" if wrong.positive?
        end

        # @return [Boolean] whether more may come
        def read(client)
          piece = client.socket.read_nonblock(4_096)
          client.came.concat([now] * piece.scan(Application::LINE).size)
          true
        rescue EOFError
          false
        rescue SystemCallError => e
          raise Child::Failed, "a stream broke off: #{e.class}"
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
