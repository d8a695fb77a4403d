# frozen_string_literal: true

require_relative "certificate"

module Bench
  module HTTP2
    # How a server of bin/bench http is run here: it listens in plain text or over TLS, as the row wants it.
    module Contestant
      # @return [Boolean]
      def tls? = !!@tls

      # @return [Contestant] the same over TLS
      def over_tls = dup.tap { |other| other.tls = true }

      protected

      attr_writer :tls

      private

      # @return [String] https or http
      def scheme = tls? ? "https" : "http"
    end
  end
end
