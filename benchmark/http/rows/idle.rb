# frozen_string_literal: true

require_relative "../native"

module Bench
  module HTTP
    module Rows
      # What connections cost that have asked once and now ask nothing, above the server as it was before they came.
      class Idle < HTTPRow
        SETTLING = 2 # seconds: until a server has put its connections away

        def unit = "MB"

        def details = %i[empty_mb errors]

        def shown = %i[empty_mb]

        def sizes(quick:) = { connections: quick ? connections / 10 : connections }

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          warm_up(server)
          empty = memory(server)
          Native.run("holder", server.port, "/hello", size[:connections]) do |said, input|
            opened = said.call
            sleep(SETTLING)
            held = memory(server)
            input.puts
            sample(size[:connections], empty, held, opened, said.call)
          end
        end

        private

        # The first requests load what has nothing to do with connections.
        def warm_up(server)
          50.times { server.check("/hello", expected: Application::HELLO) }
        end

        def memory(server)
          server.tree.pss_megabytes or raise Child::Failed, "this system does not tell a process's memory"
        end

        # A server that gave up connections holds fewer of them: that is an error, not a saving.
        def sample(wanted, empty, held, opened, again)
          errors = wanted - again[:answered]
          { value: held - empty, empty_mb: empty, errors:, note: errors.zero? ? nil : note(wanted, opened, again) }
        end

        def note(wanted, opened, again)
          "of #{wanted} connections #{opened[:answered]} were answered, #{again[:lost]} were closed while they were " \
            "idle, #{again[:answered]} were answered again"
        end
      end
    end
  end
end
