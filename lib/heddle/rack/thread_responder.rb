# frozen_string_literal: true

module Heddle
  module Rack
    # Sends from a thread what an application returned.
    class ThreadResponder < Responder
      private

      def array(body, status, headers)
        @exchange.ask { Responder.new(@exchange.exchange, @input, wait: @wait).respond(status, headers, body) }
      end

      alias events array

      def open_stream(**) = ThreadStream.new(input, @exchange, **)
    end
  end
end
