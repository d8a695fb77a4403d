# frozen_string_literal: true

require_relative "contestant"
require_relative "server"

module Bench
  module HTTP
    # A suite whose contestants are servers: each sample is taken from one that was started for it.
    class ServerSuite < Suite
      # Ten thousand connections are more than a process is allowed by default.
      def initialize
        super
        _, most = Process.getrlimit(Process::RLIMIT_NOFILE)
        Process.setrlimit(Process::RLIMIT_NOFILE, most)
      end

      def legend = ""

      # @param ruby_flags [Array<String>]
      # @return [Hash] :version; that it starts and answers
      # @raise [Child::Failed]
      def probe(contestant, ruby_flags:)
        version = contestant.version
        Server.run(contestant, ruby_flags:) { { version: } }
      rescue Contestant::Unavailable => e
        { failure: e.message }
      end

      # @param row [Row]
      # @param size [Hash]
      # @return [Hash]
      # @raise [Child::Failed]
      def sample(row, contestant, size, ruby_flags:)
        Server.run(contestant, ruby_flags:) { |server| row.measure(server, size) }
      end
    end
  end
end
