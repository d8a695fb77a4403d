# frozen_string_literal: true

require "net/http"
require "socket"

module Bench
  module Databases
    module Rows
      # Clients leave a server while their queries run, on all connections of its pool: how long until others are
      # answered, and until the database runs none of those queries.
      class WebAbandoned < ServedRow
        CLIENTS = 20
        PAUSE = 0.005
        # Seconds until the queries of all clients must run.
        PATIENCE = 10
        private_constant :PAUSE, :PATIENCE

        def key = "web-abandoned"

        def title
          "#{CLIENTS} clients over HTTP leave during a query of #{Application::STUCK} s: " \
            "the next #{CLIENTS} answered after"
        end

        def unit = "ms"

        def better = :lower

        def connections = CLIENTS

        def details = [:gone_ms]

        def shown = [:gone_ms]

        def goals = [Goal.new(at_most: 100, unit: "ms"), Goal.new(of: :gone_ms, at_most: 500)]

        def sizes(quick:) = { quick: }

        def measure(server, size)
          @observer = Drivers::Pg.new.tap { |driver| driver.open(size.fetch(:place), 1, nil) }
          get_all(server, "/wait", Application::WAITED) # opens all connections
          left = leave(server)
          get_all(server, "/item", Application::ITEM)
          served = now - left
          sleep(PAUSE) while stuck.positive?
          { value: served * 1000, gone_ms: (now - left) * 1000 }
        end

        private

        def blocking? = false

        # @return [Integer] how many queries run that no client waits for any more, or that clients still wait for
        def stuck = @observer.query(Queries.count_stuck(Application::STUCK, database)).to_i

        # @return [Float] when all clients left
        def leave(server)
          sockets = Array.new(CLIENTS) { TCPSocket.new(HTTP::Server::HOST, server.port) }
          sockets.each { |socket| socket.write("GET /stuck HTTP/1.1\r\nhost: bench\r\n\r\n") }
          deadline = now + PATIENCE
          until stuck == CLIENTS
            raise Child::Failed, "only #{stuck} of #{CLIENTS} queries run at once" if now > deadline

            sleep(PAUSE)
          end
          now.tap { sockets.each(&:close) }
        end

        def get_all(server, path, expected)
          Array.new(CLIENTS) { Thread.new { server.check(path, expected:) } }
               .each { |thread| thread.report_on_exception = false }.each(&:join)
        end
      end
    end
  end
end
