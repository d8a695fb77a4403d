# frozen_string_literal: true

module Heddle
  module Rack
    # Sends from a thread what an application returned.
    class ThreadResponder < Responder
      private

      def array(chunks, status, headers)
        @exchange.ask { Responder.new(@exchange.exchange, @input, wait: @wait).respond(status, headers, chunks) }
      end

      def events(body, status, headers)
        @exchange.ask { Responder.new(@exchange.exchange, @input, wait: @wait).respond(status, headers, body) }
      end

      def open_stream(**) = ThreadStream.new(input, @exchange, **)
    end
  end
end
