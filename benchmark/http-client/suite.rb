# frozen_string_literal: true

require_relative "contestants/async_http"
require_relative "contestants/excon"
require_relative "contestants/heddle"
require_relative "contestants/httpx"
require_relative "contestants/net_http"
require_relative "contestants/net_http_persistent"
require_relative "contestants/typhoeus"
require_relative "gets"
require_relative "http2_gets"
require_relative "slow_gets"

module Bench
  # HTTP clients in Heddle's loop.
  class HttpClientSuite < Suite
    def name = "http-client"

    def title = "HTTP clients for Ruby"

    def rows = @rows ||= [Rows::ClientGets, Rows::ClientHttp2Gets, Rows::ClientSlowGets].flat_map(&:variants)

    def contestants
      @contestants ||= [Contestants::HeddleClient, Contestants::NetHttp, Contestants::NetHttpPersistent,
                        Contestants::ExconClient, Contestants::Httpx, Contestants::AsyncHttp,
                        Contestants::TyphoeusClient].map(&:new)
    end
  end
end
