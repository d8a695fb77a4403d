# frozen_string_literal: true

require "resolv"
require "socket"

module Bench
  module DNS
    module Rows
      # Fifty queries at once, whose handler asks an HTTP server that takes a second: how long until all are answered.
      class Handler < Row
        QUERIES = 50
        LIMIT = 60 # seconds, for a server that handles one after the other
        private_constant :QUERIES, :LIMIT

        def key = "handler"

        def title = "#{QUERIES} queries, the handler asks a server that takes 1 s"

        def unit = "s"

        def goals = [Goal.new(at_most: 1.1, unit: "s")]

        def excludes(contestant) = contestant.role == :baseline ? "runs no handler" : nil

        def sizes(quick:) = { queries: quick ? 5 : QUERIES }

        def around(_quick) = DelayServer.run { |port| yield({ port: }) }

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          socket = UDPSocket.new
          socket.connect(Server::HOST, server.port)
          began = now
          size[:queries].times { |id| socket.send(question(id, size[:port]), 0) }
          waiting = (0...size[:queries]).to_a
          until waiting.empty?
            left = began + LIMIT - now
            raise Child::Failed, "#{waiting.size} queries have no answer" unless
              left.positive? && socket.wait_readable(left)

            waiting.delete(answered(socket.recv(512)))
          end
          { value: now - began }
        ensure
          socket&.close
        end

        private

        def question(id, port)
          Resolv::DNS::Message.new(id).tap do |message|
            message.rd = 1
            message.add_question("n#{id}.#{port}.slow.bench.test", Resolv::DNS::Resource::IN::A)
          end.encode
        end

        # @return [Integer] the query that was answered
        def answered(packet)
          message = Resolv::DNS::Message.decode(packet)
          raise Child::Failed, "a query was answered without an address" if message.answer.empty?

          message.id
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
