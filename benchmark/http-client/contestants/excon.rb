# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # Excon, a persistent connection for each task.
    class ExconClient < HttpClient
      def key = "excon"
      def label = "Excon"
      def version = ::Excon::VERSION

      def open(base, tasks, _http2)
        @connections = Array.new(tasks) { ::Excon.new(base, persistent: true, thread_safe_sockets: false) }
      end

      def get(task, path) = @connections[task].get(path:).body

      private

      def load_client = require("excon")
    end
  end
end
