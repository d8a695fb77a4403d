# frozen_string_literal: true

module Heddle
  class Live
    # The handler of a page's WebSocket. Checks the client's messages. The first message contains the page's token.
    # Later messages are events, or a 1 for each message of the server that the client has applied. Any other message
    # closes the socket.
    #
    # @api private
    class Connection
      # Maximum bytes of a message.
      MAX_SIZE = 16_384
      # Close codes that a browser sends when the user leaves the page.
      LEAVING = [1000, 1001].freeze
      private_constant :LEAVING

      # @param live [Live]
      # @param user [String, nil] the user of the request that has opened the socket
      # @param owner [String] the user, or the client's network, see {Live#leave}
      def initialize(live, user, owner)
        @live = live
        @user = user
        @owner = owner
        @session = nil
        @bucket = TokenBucket.new(50, 100)
      end

      # @see WebSocket
      def on_message(client, message)
        return client.close(1009, "an event may have at most #{MAX_SIZE} bytes") if message.bytesize > MAX_SIZE

        value = JSON.parse(message.force_encoding(Encoding::UTF_8).scrub { raise EncodingError }, max_nesting: 3)
        return acknowledge(client) if value == 1
        return client.close(1008, "too many events") unless @bucket.take?
        return client.close(1008, "an event must be a JSON object") unless value.is_a?(Hash)

        @session ? call(client, value) : begin_session(client, value)
      rescue JSON::ParserError, EncodingError
        client.close(1007, "an event must be JSON")
      end

      # @see WebSocket
      def on_close(client)
        @live.leave(@session, client, @owner, LEAVING.include?(client.close_code)) if @session
      end

      private

      def acknowledge(client) = (client.close(1008, "no patch to confirm") unless @session&.acknowledge)

      def begin_session(client, value)
        @session = @live.session(value["token"], value["id"], @user)
        return @session.attach(client) if @session

        client.write('{"reload":true}')
        client.close(1008, "the token is not valid")
      end

      def call(client, value)
        name, values = @live.page.read_event(value["event"], value["values"])
        name ? @session.call(name, values) : client.close(1008, "unknown event or parameters")
      end
    end
  end
end
