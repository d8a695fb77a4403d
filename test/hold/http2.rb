# frozen_string_literal: true

require_relative "../support/h2_client"
require_relative "resources"

module Hold
  # HTTP/2 sessions without a stream.
  class HTTP2Sessions < Resource
    private

    def begin_holding(socket) = H2Client.new(socket).tap(&:send_preface)
  end

  # Requests over HTTP/2 whose bodies do not end, as many on a connection as it may have.
  class HTTP2Streams < HTTP2Sessions
    STREAMS = 100
    private_constant :STREAMS

    private

    def begin_holding(socket)
      client = super
      STREAMS.times { |number| client.send_frame("HEADERS eh #{(number * 2) + 1} post") }
    end
  end

  # Responses over HTTP/2 of which nothing is read.
  class HTTP2Responses < HTTP2Sessions
    STREAMS = 20
    private_constant :STREAMS

    private

    def begin_holding(socket)
      client = super
      path = '82 86 04 06 "/large" 41 01 "a"'
      STREAMS.times { |number| client.send_frame("HEADERS es+eh #{(number * 2) + 1} #{path}") }
    end

    def open?(_socket) = true
  end
end
