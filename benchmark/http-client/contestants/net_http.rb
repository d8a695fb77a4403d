# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # Ruby's own, a connection for each task, kept by hand.
    class NetHttp < HttpClient
      def key = "net-http"
      def label = "Net::HTTP, kept by hand"
      def version = ::Net::HTTP::VERSION

      def open(base, tasks, _http2)
        uri = URI(base)
        @connections = Array.new(tasks) { ::Net::HTTP.new(uri.host, uri.port, nil) }
      end

      def get(task, path)
        connection = @connections[task]
        connection.start unless connection.started?
        connection.get(path).body
      end

      private

      def load_client = require("net/http")
    end
  end
end
