# frozen_string_literal: true

require_relative "contestants"
require_relative "gets"
require_relative "quick_server"

module Bench
  # HTTP clients in Heddle's loop.
  class HttpClientSuite < Suite
    def name = "http-client"

    def title = "HTTP clients for Ruby"

    def rows = @rows ||= Rows::ClientGets.variants

    def contestants = @contestants ||= [Contestants::HeddleClient.new, Contestants::NetHttp.new]
  end
end
