# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.hijack`: hands the connection's socket to the application, for good.
    class FullHijack
      # @param connection [HTTP::H1::ServerConnection]
      # @param response [HTTP::H1::Response]
      def initialize(connection, response)
        @connection = connection
        @response = response
        @socket = nil
      end

      # @return [Socket] the same one however often it is asked for
      # @raise [IOError] when the answer has begun
      def call
        return @socket if @socket
        raise IOError, "the answer has begun: the connection can't be taken over any more" if @response.started?

        @socket = @connection.detach
      end

      # @return [Boolean]
      def hijacked? = !@socket.nil?
    end
  end
end
