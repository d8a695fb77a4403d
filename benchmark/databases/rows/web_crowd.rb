# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Many more clients than connections, over HTTP. A server that has no time for a request says so with 503.
      class WebCrowd < ServedRow
        CLIENTS = 500

        def key = "web-crowd"

        def title = "#{CLIENTS} clients over HTTP, #{connections} connections, a query of 50 ms each"

        def unit = "answers/s"

        def connections = 5

        def details = %i[p50_ms p99_ms unavailable errors]

        def shown = %i[p99_ms unavailable errors]

        # What the connections can do at most, less a tenth; and no answer is an error but 503.
        def goals
          [Goal.new(at_least: (0.9 * connections / Application::WAIT).round, unit: "answers/s"),
           Goal.new(of: :errors, at_most: 0)]
        end

        def sizes(quick:) = { seconds: quick ? 2 : 6, clients: quick ? 20 : CLIENTS }

        private

        def blocking? = false

        def path = "/wait"

        def expected = Application::WAITED
      end
    end
  end
end
