# frozen_string_literal: true

module Bench
  module HTTP2
    module Rows
      # As many requests as the server can answer, made by h2load.
      class Load < HTTP::Rows::Load
        # @param streams [Integer] requests at once on each connection
        # @param warm_up [Integer] requests before those that are measured
        # @param tls [Boolean]
        # @param flags [Array<String>] of h2load
        def initialize(streams: 10, tls: false, flags: [], connections: 100, warm_up: 2_000, **)
          super(connections:, p99: false, **)
          @streams = streams
          @tls = tls
          @flags = flags
          @warm_up = warm_up
        end

        # @return [Boolean]
        def tls? = @tls

        def around(_quick)
          raise Child::Failed, "h2load is not installed" unless H2load.installed?
          return yield({}) unless @body

          Tempfile.create("body") do |file|
            file.write(@body)
            file.flush
            yield({ body: file.path })
          end
        end

        def measure(server, size)
          @posted = size[:body] ? ["-d", size[:body]] : []
          @rate = nil
          super
        end

        private

        # As many requests as the server answered in this time when it was warmed up.
        def load(server, connections, seconds)
          requests = @rate ? [(@rate * seconds).round, connections * @streams].max : @warm_up
          run = H2load.run("#{server.url}#{@path}", connections:, streams: @streams, requests:,
                                                    flags: [*@flags, *@posted])
          @rate = run.rate
          run
        end
      end
    end
  end
end
