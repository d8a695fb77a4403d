# frozen_string_literal: true

require "socket"

module Bench
  module Seeds
    module Rows
      # An export of a million rows that a client reads slower than the application writes it: by how much the server's
      # memory grows meanwhile, and how late another client is answered.
      class Export < HTTP::Rows::HTTPRow
        ROWS = 1_000_000
        PIECE = 1_000_000 # bytes
        RATE = 10_000_000 # bytes a second
        private_constant :ROWS, :PIECE, :RATE

        def initialize
          super(key: "csv", title: "1,000,000 rows of CSV, a client that reads 10 MB/s: memory of the server grows by",
                connections: 1, goals: [Goal.new(at_most: 10, unit: "MB")])
        end

        def unit = "MB"

        # A server that grows by a tenth of a megabyte is not ten times as good as one that grows by one.
        def compared? = false

        def details = %i[max_ms]

        def shown = %i[max_ms]

        def sizes(quick:) = { rows: quick ? ROWS / 10 : ROWS }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check("/csv/1000", expected: Application::CSV_ROW * 1_000)
          before = memory(server)
          grown = [0]
          late = []
          bytes = download(server, size[:rows]) do
            grown << (memory(server) - before)
            late << time_of_hello(server)
          end
          raise Child::Failed, "only #{bytes} bytes came" if bytes < size[:rows] * Application::CSV_ROW.bytesize

          { value: grown.max, max_ms: late.max }
        end

        private

        def memory(server) = server.tree.rss_megabytes

        # @return [Integer] bytes that came, chunks' sizes among them
        def download(server, rows)
          TCPSocket.open(HTTP::Server::HOST, server.port) do |socket|
            socket.write("GET /csv/#{rows} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            bytes = 0
            next_at = now
            while (piece = socket.read(PIECE))
              bytes += piece.bytesize
              next_at += PIECE.fdiv(RATE)
              yield
              sleep([next_at - now, 0].max)
            end
            bytes
          end
        rescue SystemCallError => e
          raise Child::Failed, "the export broke off: #{e.class}"
        end

        # @return [Float] milliseconds
        def time_of_hello(server)
          asked = now
          server.check("/hello", expected: Application::HELLO)
          (now - asked) * 1_000
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
