# frozen_string_literal: true

require_relative "../http/rows/http_row"
require_relative "../http/rows/load"
require_relative "../http/native"

module Bench
  module Compute
    # The lines of the table, and what each wants of Heddle.
    module Rows
      PUMA = "puma-3"
      PAGE = %r{\A<!doctype html>.*</html>\z}m
      # Requests a second, CPU time of a request, and latencies, beside Puma with as many threads as Rails gives it.
      GOALS = [Goal.new(at_least: 1.0, than: PUMA), Goal.new(of: :cpu_us, at_most: 1.02, than: PUMA),
               Goal.new(of: :mean_ms, at_most: 1.0, than: PUMA), Goal.new(of: :p50_ms, at_most: 1.15, than: PUMA),
               Goal.new(of: :p99_ms, at_most: 1.0, than: PUMA)].freeze

      # As many pages as so many clients get, each of which asks again when it has its answer.
      class Pages < HTTP::Rows::Load
        def details = [:mean_ms, :p50_ms, *super]

        def shown = %i[cpu_us mean_ms p50_ms p99_ms pss_mb]

        # All clients wait for the whole time: by Little's law.
        def measure(server, size)
          super.then { |sample| sample.merge(mean_ms: connections * 1_000 / sample[:value]) }
        end

        private

        # Pages that clients have asked for and not waited for would be made while the others are measured.
        def warm_up_connections = 2
      end

      # The same on a machine whose cores others use: so many programs compute meanwhile, at normal priority.
      class Crowded < Pages
        LOOP = [RbConfig.ruby, "--disable=gems", "-e", "nil while true"].freeze

        # @param others [Integer]
        def initialize(others:, **)
          super(**)
          @others = others
        end

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          others = Array.new(@others) { Process.spawn(*LOOP) }
          super
        ensure
          others&.each do |pid|
            Process.kill("KILL", pid)
            Process.wait(pid)
          end
        end
      end

      # Pages at a steady rate, whether the ones before are answered or not; beside others that compute for long.
      class Paced < HTTP::Rows::HTTPRow
        # @return [Float, nil] the rate as a share of what Puma can answer at most
        attr_reader :share

        # @param path [String] the address
        # @param rate [Numeric, nil] requests a second
        # @param hogs [Integer] how many requests compute meanwhile
        def initialize(path:, rate: nil, share: nil, hogs: 0, **)
          super(connections: 128, goals: [Goal.new(at_least: 1.0, than: PUMA)], **)
          @path = path
          @rate = rate
          @share = share
          @hogs = hogs
        end

        # @param server [HTTP::Server]
        # @return [Float] requests a second that it can answer at most
        def capacity(server)
          server.check(@path, expected: PAGE)
          2.times.map { Wrk.run("#{server.url}#{@path}", connections: 16, seconds: 4, core: nil).rate }.last
        end

        def unit = "ms (p99)"

        def details = %i[p50_ms max_ms cpu_us errors pss_mb]

        def shown = %i[p50_ms max_ms pss_mb]

        def sizes(quick:) = { warm_up: quick ? 1 : 3, measured: quick ? 2 : 10 }

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check(@path, expected: PAGE)
          hogs = Array.new(@hogs) { start_hog(server.port) }
          before = nil
          rate = @rate || (size.fetch(:capacity) * @share)
          answers = HTTP::Native.run("paced", server.port, @path, connections, rate, size[:warm_up] * 1_000,
                                     size[:measured] * 1_000) do |said, _|
            said.call
            before = server.tree.cpu_seconds
            said.call
          end
          sample(server, answers, before)
        ensure
          hogs&.each(&:close)
        end

        private

        # One of 10 s and more, so that it computes for as long as the others are measured.
        def start_hog(port)
          TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET /hog/15000 HTTP/1.1\r\nhost: a\r\n\r\n") }
        end

        def sample(server, answers, before)
          raise Child::Failed, "answered no request" unless answers[:answers].positive?

          errors = answers[:errors] + answers[:wrong]
          { value: answers[:p99_ms], errors:, **answers.slice(:p50_ms, :max_ms),
            note: errors.zero? ? nil : "#{answers[:wrong]} answers that were no 200, #{answers[:errors]} broken off",
            **usage(server, before, server.tree.cpu_seconds, answers[:answers]) }
        end
      end

      module_function

      # @return [Array<Row>]
      def all
        [*[5, 25, 75].flat_map { |milliseconds| [1, 8, 32, 64].map { |clients| pages("page", milliseconds, clients) } },
         pages("queries", 25, 32), crowded, hogs, *[0.6, 0.8, 0.95].map { |share| half(share) }]
      end

      def pages(kind, milliseconds, clients)
        what = kind == "page" ? "pages" : "pages with a query a millisecond"
        title = "#{what} of #{milliseconds} ms, #{clients} #{clients == 1 ? "client" : "clients"}"
        Pages.new(key: "#{kind}-#{milliseconds}-#{clients}", connections: clients, path: "/#{kind}/#{milliseconds}",
                  expected: PAGE, goals: GOALS, seconds: 10, title:)
      end

      # Here each wake-up of another thread takes a slot of a busy core, so the goals are those of the tail.
      def crowded
        goals = [Goal.new(of: :p99_ms, at_most: 1.25, than: PUMA), Goal.new(of: :cpu_us, at_most: 1.05, than: PUMA)]
        Crowded.new(key: "crowded", connections: 1, path: "/page/5", expected: PAGE, goals:, seconds: 10, others: 4,
                    title: "pages of 5 ms, 1 client, while four other programs compute")
      end

      def hogs
        Paced.new(key: "hogs", path: "/page/5", rate: 20, hogs: 5,
                  title: "20 pages of 5 ms a second, while five requests compute for 10 s")
      end

      def half(share)
        Paced.new(key: "half-#{(share * 100).round}", path: "/half/20", share:,
                  title: "requests that compute for 20 ms and wait as long, at #{(share * 100).round} % of Puma's most")
      end
    end
  end
end
