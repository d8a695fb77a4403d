# frozen_string_literal: true

module Heddle
  module Rack
    # Sends the response that an application has returned in a thread. The loop sends arrays and event streams.
    class ThreadResponder < Responder
      private

      def array(body, status, headers)
        @exchange.ask { Responder.new(@exchange.exchange, @input, wait: @wait).respond(status, headers, body) }
      end

      alias events array

      def open_stream(ended = nil) = ThreadStream.new(input, @exchange, ended)
    end
  end
end
