# frozen_string_literal: true

require "socket"

module Bench
  module Stalls
    # Clients of one server, each with a connection of its own, all driven by one thread.
    class Crowd
      LIMIT = 70 # seconds that any of them waits for its answer

      # One connection: what it asked, when, and when the answer was whole.
      class Client
        attr_reader :socket, :asked, :answered, :status, :due

        def initialize(port)
          @socket = TCPSocket.new("127.0.0.1", port)
          @status = nil
          @due = nil
        end

        # @return [Boolean]
        def waits? = !@asked.nil? && @answered.nil?

        # @return [String] of a plain answer
        def body = @answer.split("\r\n\r\n", 2).last.sub(/\A\h+\r\n(.*?)\r\n0\r\n\r\n\z/m, "\\1")

        # @return [Float] how long the answer took
        def seconds = @answered - @asked

        def ask(path)
          @asked = Crowd.now
          @answered = @due = nil
          @answer = +""
          @socket.write("GET #{path} HTTP/1.1\r\nhost: bench\r\n\r\n")
        end

        # @return [Boolean] whether the answer is whole
        # @raise [Child::Failed]
        def hear
          @answer << @socket.readpartial(65_536)
          return false unless whole?

          @answered = Crowd.now
          @status = @answer[%r{\AHTTP/1\.1 (\d+)}, 1].to_i
          true
        rescue SystemCallError, EOFError => e
          raise Child::Failed, "a connection broke off: #{e.class}"
        end

        # To ask again at that time.
        def rest_until(time) = @due = time

        private

        def whole?
          head, body = @answer.split("\r\n\r\n", 2)
          return false unless body
          return body.end_with?("0\r\n\r\n") if head.match?(/^transfer-encoding: *chunked/i)

          body.bytesize >= head[/^content-length: *(\d+)/i, 1].to_i
        end
      end

      # @return [Float] seconds
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def initialize(port)
        @port = port
      end

      # @return [Array<Client>] connected, with nothing asked
      def clients(count) = Array.new(count) { Client.new(@port) }

      # @return [Array<Client>] that wait for an answer
      def ask(path, count) = clients(count).each { |client| client.ask(path) }

      # Waits until all are answered.
      #
      # @param limit [Numeric] seconds
      # @raise [Child::Failed] when it takes too long or an answer is no 200
      def await(clients, limit: LIMIT)
        deadline = Crowd.now + limit
        while (waiting = clients.select(&:waits?)).any?
          raise Child::Failed, "#{waiting.size} requests had no answer after #{limit} s" if Crowd.now > deadline

          hear(waiting, 1)
        end
        wrong = clients.map(&:status).uniq - [200]
        raise Child::Failed, "answered #{wrong.join(", ")}" unless wrong.empty?
      end

      # Each asks, and again some time after its answer, for so many seconds.
      #
      # @return [Array<Float>] the seconds that the answers took; those that did not come count as long as they were
      #   waited for
      def repeat(clients, path, pause:, seconds:)
        took = []
        finish = Crowd.now + seconds
        clients.each_with_index { |client, index| client.rest_until(Crowd.now + (pause * index / clients.size)) }
        while Crowd.now < finish
          clients.each { |client| client.ask(path) if client.due && client.due <= Crowd.now }
          hear(clients.select(&:waits?), pause / 20.0) do |client|
            took << client.seconds
            client.rest_until(Crowd.now + pause)
          end
        end
        took + clients.select(&:waits?).map { |client| Crowd.now - client.asked }
      end

      private

      def hear(waiting, seconds)
        sockets = waiting.to_h { |client| [client.socket, client] }
        ready, = IO.select(sockets.keys, nil, nil, seconds)
        Array(ready).each do |socket|
          client = sockets.fetch(socket)
          yield client if client.hear && block_given?
        end
      end
    end
  end
end
