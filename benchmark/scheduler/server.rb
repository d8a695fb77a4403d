# frozen_string_literal: true

require "socket"

module Bench
  module Rows
    # The plainest server that can be written with Ruby's own classes: accept, a fiber for each connection, gets until
    # the blank line, an answer without a body. The load is wrk on the other core.
    class Server < Row
      ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
      BACKLOG = 8_192

      def self.variants = [64, 8_192].map { |connections| new(connections) }

      def initialize(connections)
        super()
        @connections = connections
      end

      def key = "server-#{@connections}"

      def title = "TCPServer loop, #{Figure.grouped(@connections)} connections"

      def unit = "req/s"

      def better = :higher

      def core = 0

      def details = %i[cpu_us p99_ms socket_errors]

      def sizes(quick:) = { connections: @connections, seconds: duration(quick) }

      def excludes(contestant)
        return "can't serve two" if contestant.key == "blocking"

        need = @connections + 200
        limit = Process.getrlimit(Process::RLIMIT_NOFILE).first
        "ulimit -n is #{limit}, #{need} are needed" if limit < need
      end

      def around(_quick)
        raise Child::Failed, "wrk is not installed" unless Wrk.installed?

        yield({})
      end

      def measure(contestant, _size)
        server = TCPServer.new("127.0.0.1", 0)
        server.listen(BACKLOG)
        yield({ port: server.local_address.ip_port })
        contestant.run do
          loop do
            socket = server.accept
            contestant.spawn { answer(socket) }
          end
        end
      end

      def drive(child, size)
        port = child.result.fetch(:port)
        begin
          load(child, "http://127.0.0.1:#{port}/", size)
        rescue Child::Failed => e
          raise child.explain(e)
        end
      end

      private

      # Thousands of connections take seconds to be made, in which there is little to measure.
      def duration(quick)
        return quick ? 1 : 4 if @connections < 1_000

        quick ? 4 : 8
      end

      def load(child, url, size)
        Wrk.run(url, connections: 64, seconds: 1)
        before = ProcessUsage.cpu_seconds_of(child.pid)
        answers = Wrk.run(url, connections: size[:connections], seconds: size[:seconds])
        after = ProcessUsage.cpu_seconds_of(child.pid)
        raise Child::Failed, "answered no request" if answers.requests.zero?

        { value: answers.rate, p99_ms: answers.p99_ms, socket_errors: answers.socket_errors,
          cpu_us: before && after && ((after - before) * 1e6 / answers.requests),
          note: answers.socket_errors.zero? ? nil : "socket errors: #{answers.error_words}" }
      end

      def answer(socket)
        while (line = socket.gets)
          socket.write(ANSWER) if line == "\r\n"
        end
      rescue Errno::ECONNRESET, Errno::EPIPE
        # wrk ends by closing every connection, in the middle of whatever it had asked.
      ensure
        socket.close
      end
    end
  end
end
