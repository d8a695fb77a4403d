# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # net-http-persistent, with a pool of as many connections as there are tasks.
    class NetHttpPersistent < HttpClient
      def key = "net-http-persistent"
      def label = "net-http-persistent"
      def version = ::Net::HTTP::Persistent::VERSION

      def open(base, tasks, _http2)
        @base = base
        @client = ::Net::HTTP::Persistent.new(pool_size: tasks)
      end

      def get(_task, path) = @client.request(URI("#{@base}#{path}")).body

      private

      def load_client = require("net/http/persistent")
    end
  end
end
