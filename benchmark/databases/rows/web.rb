# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # The same pages as in {Pages}, by a server.
      class Web < ServedRow
        CLIENTS = 16

        def key = "web"

        def title
          "pages of one long and #{Application::SHORT} short queries over HTTP, #{CLIENTS} clients, " \
            "#{connections} connections"
        end

        def unit = "pages/s"

        def connections = 12

        def details = %i[p50_ms p99_ms cpu_us errors]

        def goals = [Goal.new(at_least: 1.6, than: "blocking"), Goal.new(at_least: 1.1, than: "async-ar")]

        def sizes(quick:) = { seconds: quick ? 2 : 6, clients: CLIENTS }

        private

        def path = "/page"

        def expected = Application::PAGE
      end
    end
  end
end
