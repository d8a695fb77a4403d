# frozen_string_literal: true

module Bench
  module Contestants
    # A client that runs in Heddle's loop: all of them have the same scheduler.
    class HttpClient < Contestant
      # @param base [String] URL
      # @param tasks [Integer]
      def open(base, tasks) = raise(NotImplementedError)

      # @param task [Integer] which of them asks
      # @return [String] the body
      def get(_task, _path) = raise(NotImplementedError)

      def run(&) = ::Heddle.run(&)

      def spawn(&) = ::Heddle.async(&)
    end

    # Heddle::HTTP::Client.
    class HeddleClient < HttpClient
      def key = "heddle"
      def label = "Heddle"
      def role = :heddle

      def prepare
        require "heddle"
        ::Heddle::HTTP::Client
      end

      def version = ::Heddle::VERSION

      def open(base, tasks)
        @client = ::Heddle::HTTP::Client.new(base, max_connections: tasks, proxy: nil)
      end

      def get(_task, path) = @client.get(path).body
    end

    # Ruby's own, a connection for each task, kept by hand.
    class NetHttp < HttpClient
      def key = "net-http"
      def label = "Net::HTTP, kept by hand"

      def prepare
        require "heddle"
        require "net/http"
      end

      def version = ::Net::HTTP::VERSION

      def open(base, tasks)
        uri = URI(base)
        @connections = Array.new(tasks) { ::Net::HTTP.new(uri.host, uri.port, nil).start }
      end

      def get(task, path) = @connections[task].get(path).body
    end
  end
end
