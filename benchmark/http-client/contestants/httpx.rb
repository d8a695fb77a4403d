# frozen_string_literal: true

require_relative "../http_client"

module Bench
  module Contestants
    # httpx with persistent connections, a session for each task: one session that several fibers share computes for
    # ever (1.9.0, with and without its plugin fiber_concurrency).
    class Httpx < HttpClient
      def key = "httpx"
      def label = "httpx"
      def version = ::HTTPX::VERSION
      def http2? = true

      def open(base, tasks, http2)
        client = ::HTTPX.plugin(:persistent).with(origin: base, fallback_protocol: http2 ? "h2" : "http/1.1")
        @sessions = Array.new(tasks) { client.with({}) }
      end

      def get(task, path) = @sessions[task].get(path).raise_for_status.body.to_s

      private

      def load_client = require("httpx")
    end
  end
end
