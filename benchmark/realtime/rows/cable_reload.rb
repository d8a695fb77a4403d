# frozen_string_literal: true

module Bench
  module Realtime
    module Rows
      # Numbered broadcasts to clients of Action Cable with positions, while the workers are replaced.
      class CableReload < SocketRow
        CLIENTS = File.expand_path("../cable_clients.rb", __dir__)
        RELOADED = 30 # seconds
        private_constant :CLIENTS, :RELOADED

        def unit = "messages"

        def compared? = false

        def details = %i[closed errors]

        def shown = %i[closed]

        def processes = 2

        def sizes(quick:) = { clients: quick ? connections / 10 : connections, messages: quick ? 100 : 1_000 }

        # @return [Hash] the sample: messages that a client missed, or got twice or in another order
        def measure(server, _contestant, size)
          words = [server.port, size[:clients], size[:messages]].map(&:to_s)
          HTTP::Native.converse(RbConfig.ruby, "-r", HTTP::Contestant::GEM_PATHS, CLIENTS, *words) do |said, _input|
            said.call
            broadcast_over_a_reload(server, size[:messages])
            answer = said.call
            { value: answer[:missing] + answer[:wrong], closed: answer[:closed], errors: 0 }
          end
        end

        private

        # Some before, some while the workers change, and some after.
        def broadcast_over_a_reload(server, messages)
          numbers = (1..messages).to_a
          numbers.shift(messages / 3).each { |number| broadcast(server, number) }
          old = server.tree.pids - [server.pid]
          Process.kill(:HUP, server.pid)
          numbers.shift(messages / 3).each { |number| broadcast(server, number) }
          wait_until_replaced(server, old)
          numbers.each { |number| broadcast(server, number) }
        end

        def broadcast(server, number)
          answer = Net::HTTP.start(HTTP::Server::HOST, server.port, nil, max_retries: 0) do |http|
            http.get("/broadcast?#{number}")
          end
          raise Child::Failed, "a broadcast was answered #{answer.code}" unless answer.code == "204"
        end

        def wait_until_replaced(server, old)
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + RELOADED
          while server.tree.pids.intersect?(old)
            raise Child::Failed, "the workers were not replaced" if
              Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

            sleep(0.05)
          end
        end
      end
    end
  end
end
