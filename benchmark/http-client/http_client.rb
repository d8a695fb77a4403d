# frozen_string_literal: true

module Bench
  module Contestants
    # A client that runs in Heddle's loop: all of them have the same scheduler.
    class HttpClient < Contestant
      # Opens no connection yet, where the client leaves that to its first request.
      #
      # @param base [String] URL
      # @param tasks [Integer]
      # @param http2 [Boolean] by prior knowledge, without TLS
      def open(base, tasks, http2) = raise(NotImplementedError)

      # @param task [Integer] which of them asks
      # @return [String] the body
      def get(_task, _path) = raise(NotImplementedError)

      def http2? = false

      def run(&) = ::Heddle.run(&)

      def spawn(&) = ::Heddle.async(&)

      def prepare
        require "heddle"
        load_client
      end

      private

      def load_client = raise(NotImplementedError)
    end
  end
end
