# frozen_string_literal: true

module Bench
  module HTTP2
    module Rows
      # What a connection costs that has asked once and now asks nothing.
      class Idle < HTTP::Rows::Idle
        HOLDER = File.expand_path("../holder.rb", __dir__)
        KILOBYTES = 1_000.0 # in the MB of ProcessTree

        # @param tls [Boolean]
        # @param fields [String] of the request: "none" or "chromium", see holder.rb
        def initialize(tls: false, fields: "none", **)
          super(**)
          @tls = tls
          @fields = fields
        end

        # @return [Boolean]
        def tls? = @tls

        def unit = "kB"

        def time_limit = 180

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          warm_up(server)
          empty = memory(server)
          words = [server.port, "/hello", size[:connections], server.tls?, @fields].map(&:to_s)
          HTTP::Native.converse(RbConfig.ruby, HOLDER, *words) do |said, input|
            opened = said.call
            sleep(SETTLING + QUIET)
            held = memory(server)
            input.puts
            each(sample(size[:connections], empty, held, opened, said.call), size[:connections])
          end
        end

        # Seconds after which servers give back what a connection without requests does not need, Heddle after 2.
        QUIET = 2
        private_constant :QUIET

        private

        def warm_up(server) = 5.times { server.check("/hello", expected: Application::HELLO) }

        def each(sample, connections) = sample.merge(value: sample[:value] * KILOBYTES / connections)
      end
    end
  end
end
