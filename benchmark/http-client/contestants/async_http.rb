# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # async-http, whose tasks run on Heddle's loop (heddle/async).
    class AsyncHttp < HttpClient
      def key = "async-http"
      def label = "async-http"
      def version = ::Async::HTTP::VERSION
      def http2? = true

      def open(base, tasks, http2)
        protocol = http2 ? ::Async::HTTP::Protocol::HTTP2 : ::Async::HTTP::Protocol::HTTP11
        @client = ::Async::HTTP::Client.new(::Async::HTTP::Endpoint.parse(base), protocol:, retries: 0,
                                                                                 limit: http2 ? 1 : tasks)
      end

      def get(_task, path) = @client.get(path).read

      private

      def load_client
        require "async/http"
        require "heddle/async"
      end
    end
  end
end
