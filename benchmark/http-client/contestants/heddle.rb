# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # Heddle::HTTP::Client.
    class HeddleClient < HttpClient
      def key = "heddle"
      def label = "Heddle"
      def role = :heddle
      def version = ::Heddle::VERSION
      def http2? = true

      def open(base, tasks, http2)
        @client = ::Heddle::HTTP::Client.new(base, max_connections: tasks, proxy: nil,
                                                   http2: http2 ? :prior_knowledge : false)
      end

      def get(_task, path) = @client.get(path).body

      private

      def load_client = ::Heddle::HTTP::Client
    end
  end
end
