# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # Typhoeus: libcurl, whose handles keep their connections. Its calls block, so Heddle offloads them.
    class TyphoeusClient < HttpClient
      def key = "typhoeus"
      def label = "Typhoeus"
      def version = "#{::Typhoeus::VERSION}, #{::Ethon::Curl.version[/\S+/]}"

      def open(base, _tasks, _http2)
        @base = base
      end

      def get(_task, path) = ::Typhoeus.get("#{@base}#{path}").body

      private

      def load_client = require("typhoeus")
    end
  end
end
