# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The settings of the connections to an origin. Clients with equal settings share connections.
      #
      # @api private
      ConnectionSettings = Data.define(:tls, :proxy, :deny_private, :max_connections, :idle_timeout, :http2) do
        # @return [Array<String>] the protocols to offer by ALPN
        def protocols = http2 ? %w[h2 http/1.1] : %w[http/1.1]

        # @return [ConnectionSettings] the same settings, but for connections that offer only HTTP/1.1
        def without_http2 = http2 ? with(http2: false, tls: tls&.offering(%w[http/1.1])) : self

        # May connections of this scheme speak HTTP/2?
        def http2?(scheme) = http2 == :prior_knowledge || (http2 && scheme == "https")
      end
    end
  end
end
