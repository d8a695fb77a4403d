# frozen_string_literal: true

require_relative "gets"
require_relative "http2_server"

module Bench
  module Rows
    # The same over HTTP/2, without TLS.
    class ClientHttp2Gets < ClientGets
      def key = "http2-#{@tasks}"

      def title = "GETs over HTTP/2, #{@tasks} at once"

      def goals = []

      def excludes(contestant) = contestant.http2? ? super : "has no HTTP/2 without TLS here"

      def around(_quick) = Http2Server.run { |port| yield({ port: }) }

      private

      def http2? = true
    end
  end
end
