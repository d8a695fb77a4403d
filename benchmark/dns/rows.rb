# frozen_string_literal: true

require "open3"
require "tempfile"

module Bench
  module DNS
    module Rows
      # dnsperf against one server, from core 1 where the machine has two.
      class Queries < Row
        # Names: a server may keep answers by name.
        NAMES = 100
        NAME_FILE = Tempfile.create("names").tap do |file|
          NAMES.times { |number| file.puts("n#{number}.bench.test A") }
          file.close
          pid = Process.pid
          at_exit { File.unlink(file.path) if Process.pid == pid }
        end.path
        private_constant :NAME_FILE

        def sizes(quick:) = { seconds: quick ? 1 : 3 }

        private

        # @return [Hash] :rate a second, :completed and :lost, :sent
        def dnsperf(server, seconds, *arguments)
          output, status = Open3.capture2e(*Child.pin(1), "dnsperf", "-s", Server::HOST, "-p", server.port.to_s,
                                           "-l", seconds.to_s, "-t", "1", "-c", "4", "-d", NAME_FILE, *arguments)
          raise Child::Failed, "dnsperf: #{LastWords.of(output)}" unless status.success?

          { rate: output[/Queries per second:\s+([\d.]+)/, 1].to_f, sent: output[/Queries sent:\s+(\d+)/, 1].to_i,
            completed: output[/Queries completed:\s+(\d+)/, 1].to_i, lost: output[/Queries lost:\s+(\d+)/, 1].to_i }
        rescue Errno::ENOENT
          raise Child::Failed, "dnsperf is not installed"
        end
      end

      # As many as the server answers, 100 at once.
      class Flat < Queries
        def key = "flat"
        def title = "queries, 100 at once"
        def unit = "1/s"
        def better = :higher
        def details = %i[cpu_us]
        def shown = %i[cpu_us]
        def goals = [Goal.new(at_least: 3, than: "rubydns")]

        def measure(server, size)
          before = server.cpu_seconds
          found = dnsperf(server, size[:seconds], "-q", "100")
          raise Child::Failed, "answered nothing" if found[:completed].zero?

          { value: found[:rate], cpu_us: (server.cpu_seconds - before) * 1e6 / found[:completed] }
        end
      end

      # So many a second, whether they are answered or not. A query that has no answer after 5 s is lost.
      class Steady < Queries
        # As many as dnsperf may wait for: it sends on while a server falls behind.
        WAITING = 65_536

        def self.variants = [10_000, 20_000, 30_000].map { |rate| new(rate) }

        def initialize(rate)
          super()
          @rate = rate
        end

        def key = "steady-#{@rate}"
        def title = "#{Figure.grouped(@rate)} queries a second: lost"
        def unit = "%"
        def compared? = false
        def details = %i[answered cpu_us]
        def shown = %i[answered]
        def goals = [Goal.new(at_most: 0, unit: "%")]

        def measure(server, size)
          before = server.cpu_seconds
          found = dnsperf(server, size[:seconds], "-Q", @rate.to_s, "-q", WAITING.to_s)
          raise Child::Failed, "answered nothing" if found[:completed].zero?

          { value: found[:lost] * 100.0 / found[:sent], answered: found[:rate],
            cpu_us: (server.cpu_seconds - before) * 1e6 / found[:completed] }
        end
      end
    end
  end
end
