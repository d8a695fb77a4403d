# frozen_string_literal: true

module Heddle
  module Rack
    # The body of a request that a thread serves, where it is streamed: the loop reads it for the thread.
    class BodyProxy
      # @param proxy [ExchangeProxy]
      # @param body [HTTP::RequestBody]
      def initialize(proxy, body)
        @proxy = proxy
        @body = body
      end

      # @return [String, nil] the next bytes of the body, never empty; nil at its end
      # @raise (see HTTP::RequestBody#read)
      def read = @proxy.ask(aside: true) { @body.read }
    end
  end
end
