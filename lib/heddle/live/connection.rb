# frozen_string_literal: true

module Heddle
  class Live
    # Checks the client's messages. The first one has the token; the next ones are events, and a 1 for each patch that
    # the client has applied. Any other message closes its socket.
    #
    # @api private
    class Connection
      # Bytes that a message may have.
      MAX_SIZE = 16_384
      # Codes with which a browser leaves on purpose.
      LEAVING = [1000, 1001].freeze
      private_constant :LEAVING

      # @param live [Live]
      # @param user [String, nil] the user of the request for the socket
      # @param owner [String] the user or the client's network
      def initialize(live, user, owner)
        @live = live
        @user = user
        @owner = owner
        @session = nil
        @bucket = WebSocket::TokenBucket.new(50, 100)
      end

      # @see WebSocket
      def on_message(client, message)
        return client.close(1009, "an event must have at most #{MAX_SIZE} bytes") if message.bytesize > MAX_SIZE

        value = JSON.parse(message.force_encoding(Encoding::UTF_8).scrub { raise EncodingError }, max_nesting: 3)
        return acknowledge(client) if value == 1
        return client.close(1008, "too many events") unless @bucket.take?
        return client.close(1008, "an event must be an object") unless value.is_a?(Hash)

        @session ? call(client, value) : begin_session(client, value)
      rescue JSON::ParserError, EncodingError
        client.close(1007, "an event must be JSON")
      end

      # @see WebSocket
      def on_close(client)
        @live.leave(@session, client, @owner, LEAVING.include?(client.close_code)) if @session
      end

      private

      def acknowledge(client) = (client.close(1008, "no patch awaits a confirmation") unless @session&.acknowledge)

      def begin_session(client, value)
        @session = @live.session(value["token"], value["id"], @user)
        return @session.attach(client) if @session

        client.write('{"reload":true}')
        client.close(1008, "the token is not valid any more")
      end

      def call(client, value)
        name, values = @live.page.read_event(value["event"], value["values"])
        name ? @session.call(name, values) : client.close(1008, "no such event")
      end
    end
  end
end
