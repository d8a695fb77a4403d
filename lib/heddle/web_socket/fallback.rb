# frozen_string_literal: true

require "heddle/web_socket/token_bucket"
require "securerandom"

module Heddle
  module WebSocket
    # Replaces WebSockets for browsers or networks without them. The handler's messages are sent as server-sent events.
    # Each message of the client is a POST with the key of its stream, signed for its user. The POST may come to another
    # worker than the stream, so its message is published.
    #
    # @api private
    class Fallback
      # Messages of a stream per second, and in a burst, in each process. Confirmations of patches are messages, too.
      RATE = 100
      BURST = 200
      # KiB per second, and in a burst, of all messages of an owner; each counts 1 KiB more than it has. A stream costs
      # little, and its key stays valid after its end, so the rates of streams alone would not limit a client.
      OWNER_RATE = 1_000
      OWNER_BURST = 2_000
      # The streams and owners whose messages are counted. One that is dropped gets a new bucket, which is full.
      COUNTED = 2_000
      private_constant :RATE, :BURST, :OWNER_RATE, :OWNER_BURST, :COUNTED

      # @param tokens [#make, #read] sign the key of a stream for its user
      # @param size [Integer] bytes that a message may have
      def initialize(tokens, size)
        @tokens = tokens
        @size = size
        @buckets = {}
      end

      # @param env [Hash]
      # @param user [String, nil] the user of the request
      # @param owner [String] the user, or the network of the client
      # @yieldreturn [#on_message, #on_close] the handler of a new client, whose socket is a {FallbackSocket}
      # @return [Array, nil] a Rack response; nil: the request asks for something else
      def call(env, user, owner)
        posts = env["REQUEST_METHOD"] == "POST"
        return unless posts || env["HTTP_ACCEPT"]&.include?("text/event-stream")
        return [403, {}, []] unless own_origin?(env)
        return receive(env, user, owner) if posts

        key = SecureRandom.urlsafe_base64
        [200, EventStream::FIELDS.dup, FallbackSocket.new(topic_of(key), @tokens.make(key, user), yield)]
      end

      private

      # Browsers send Origin with each POST, and don't let pages forge it. Other programs send none.
      def own_origin?(env)
        origin = env["HTTP_ORIGIN"]
        origin.nil? || origin.casecmp?("#{env["rack.url_scheme"]}://#{env["HTTP_HOST"]}")
      end

      def receive(env, user, owner)
        key = @tokens.read(env["HTTP_X_STREAM_KEY"], user) or return [403, {}, []]
        return [429, {}, []] unless bucket_of([:stream, key], RATE, BURST).take?

        message = env["rack.input"]&.read(@size + 1).to_s
        return [413, {}, []] if message.bytesize > @size

        bucket = bucket_of([:owner, owner], OWNER_RATE, OWNER_BURST)
        return [429, {}, []] unless bucket.take?(1 + (message.bytesize / 1_024))

        PubSub.publish(topic_of(key), message)
        [204, {}, []]
      end

      # When there are too many buckets, drops the one that was not used for longest.
      def bucket_of(key, rate, burst)
        bucket = @buckets.delete(key) || TokenBucket.new(rate, burst)
        @buckets.shift if @buckets.size >= COUNTED
        @buckets[key] = bucket
      end

      def topic_of(key) = "heddle.stream.#{key}"
    end

    # A handler's socket, in place of {ServerSocket}, and the body of the response with its messages. It occupies a
    # fiber while it is open.
    #
    # @api private
    class FallbackSocket < EventStream
      # @return [nil] the browser does not say how it leaves
      attr_reader :close_code

      # @param topic [String] the topic with the messages of the client
      # @param key [String] the key with which the client sends them
      # @param handler [#on_message, #on_close]
      def initialize(topic, key, handler)
        super(topic)
        @key = key
        @handler = handler
        @messages = Thread::Queue.new
      end

      # @return [nil] the connection can't write the events by itself
      def connection_settings = nil

      # @param text [String] one line
      # @return [Boolean] whether it is open
      def write(text)
        @messages << text
        true
      rescue ClosedQueueError
        false
      end

      # @return [Boolean] whether it can be written to
      def open? = !@messages.closed?

      # Messages that were written before are sent first.
      # @return [void]
      def close(_code = 1000, _reason = "") = @messages.close

      # The client has left.
      # @return [void]
      def cancel = close

      # @see EventStream#serve
      def serve(stream, every: COMMENT_INTERVAL, &over)
        reading = PubSub.subscribe(topic) { |message| receive(message) }
        stream.write("event: key\ndata: #{@key}\n\n")
        write_events(stream, nil, every, -> { over&.call || (@messages.closed? && @messages.empty?) })
      ensure
        reading&.cancel
        close
        @handler.on_close(self)
      end

      private

      # After lost messages the client needs a new stream.
      def receive(message)
        return close if message.reset?

        # A callback runs to its end even if its client leaves, as on a WebSocket.
        Heddle.shield { @handler.on_message(self, String.new(message.data, encoding: Encoding::UTF_8)) }
      rescue ApplicationFailure => e
        close
        Events.report(:websocket_failed, callback: "#{@handler.class}#on_message", error: ErrorText.full(e))
      end

      def next_event(_subscription, patience)
        text = @messages.pop(timeout: patience)
        "data: #{text}\n\n" if text
      end
    end
  end
end
