# frozen_string_literal: true

module Bench
  module Modes
    # The lines of the table: what the application does.
    module Rows
      CONNECTIONS = 4

      module_function

      # @return [Array<Row>]
      def all = [cpu, file, http]

      def cpu
        HTTP::Rows::Load.new(key: "cpu", title: "the application computes", path: "/cpu", expected: "6765\n",
                             connections: CONNECTIONS, seconds: 3,
                             goals: [single("fiber", 1.0), single("thread", 0.97), single("processes", 1.9)])
      end

      def file
        HTTP::Rows::Load.new(key: "file", title: "it reads a file", path: "/file",
                             expected: File.read(Application::FILE), connections: CONNECTIONS, seconds: 3,
                             goals: [single("fiber", 1.0), single("thread", 0.66)])
      end

      def http
        Call.new(key: "http", title: "it asks a server that takes #{Application::DELAY} s", path: "/http",
                 expected: DelayServer::BODY, connections: CONNECTIONS, seconds: 3, p99: false,
                 goals: [single("fiber", 3.95), single("thread", 3.83)])
      end

      def single(whose, ratio) = Goal.new(at_least: ratio, than: "single", whose:)

      # Requests whose application asks another server, which runs meanwhile.
      class Call < HTTP::Rows::Load
        def around(_quick)
          super { DelayServer.run { |port| yield({ port: }) } }
        end

        def measure(server, size)
          @path = "/http/#{size[:port]}"
          super
        end
      end
    end
  end
end
