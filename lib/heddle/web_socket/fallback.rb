# frozen_string_literal: true

require "securerandom"

module Heddle
  module WebSocket
    # Replaces WebSockets for browsers and networks that don't support them. The handler's messages are sent as
    # server-sent events. The client sends each of its messages as a POST request with the key of its event stream; the
    # key is signed for the client's user. Another worker may receive the POST request, so pub/sub passes the message
    # on.
    #
    # @api private
    class Fallback
      # Maximum messages of a client (with one stream) per second, and in a burst, in each process. The confirmations of
      # a live page's patches count, too.
      RATE = 100
      BURST = 200
      # Maximum KiB of all messages of an owner (a user, or the network of clients without a user), per second and in a
      # burst. Each message counts 1 KiB more than its size. Needed in addition to RATE, because a client can open many
      # streams, and the keys remain valid after the streams have ended.
      OWNER_RATE = 1_000
      OWNER_BURST = 2_000
      # Maximum number of streams and owners with a {TokenBucket}. When the bucket of one is dropped, its next message
      # gets a new, full bucket.
      COUNTED = 2_000
      private_constant :RATE, :BURST, :OWNER_RATE, :OWNER_BURST, :COUNTED

      # @param tokens [#make, #read] signs the key of a stream for its user, and checks it
      # @param size [Integer] maximum bytes of a message
      def initialize(tokens, size)
        @tokens = tokens
        @size = size
        @buckets = {}
      end

      # @param env [Hash]
      # @param user [String, nil] the user of the request
      # @param owner [String] the user, or the network of a client without a user; limits apply to each owner
      # @yieldreturn [#on_message, #on_close] the handler of a new client, whose socket is a {FallbackSocket}
      # @return [Array, nil] a Rack response; nil: the request is for neither a stream nor a message
      def call(env, user, owner)
        posts = env["REQUEST_METHOD"] == "POST"
        return unless posts || env["HTTP_ACCEPT"]&.include?("text/event-stream")
        return [403, {}, []] unless own_origin?(env)
        return receive(env, user, owner) if posts

        key = SecureRandom.urlsafe_base64
        [200, EventStream::FIELDS.dup, FallbackSocket.new(topic_of(key), @tokens.make(key, user), yield)]
      end

      private

      # Browsers send Origin with each POST request, and pages can't forge it. Other programs send none.
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

      # Returns the key's bucket. When there are too many, drops the least recently used one.
      def bucket_of(key, rate, burst)
        bucket = @buckets.delete(key) || TokenBucket.new(rate, burst)
        @buckets.shift if @buckets.size >= COUNTED
        @buckets[key] = bucket
      end

      def topic_of(key) = "heddle.stream.#{key}"
    end

    # The socket of a handler, in place of {ServerSocket}. It is also the body of the response that sends the handler's
    # messages. It needs a fiber while it is open.
    #
    # @api private
    class FallbackSocket < EventStream
      # @return [nil] unknown, because the browser does not send it
      attr_reader :close_code

      # @param topic [String] the topic to which the client's messages are published
      # @param key [String] the key that the client must send with its messages
      # @param handler [#on_message, #on_close]
      def initialize(topic, key, handler)
        super(topic)
        @key = key
        @handler = handler
        @messages = Thread::Queue.new
      end

      # @return [nil] C code alone can't send these events, so a fiber sends them
      def connection_settings = nil

      # @param text [String] one line
      # @return [Boolean] false: the socket is closed
      def write(text)
        @messages << text
        true
      rescue ClosedQueueError
        false
      end

      # @return [Boolean]
      def open? = !@messages.closed?

      # Closes the socket after the pending messages are sent.
      # @return [void]
      def close(_code = 1000, _reason = "") = @messages.close

      # Called when the client has left.
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
        begin
          reading&.wait # a callback may still run; `on_close` is called after its end, as with a WebSocket
        ensure
          @handler.on_close(self)
        end
      end

      private

      # Passes a message to the handler. After lost messages, closes the stream, so that the client opens a new one.
      def receive(message)
        return close if message.reset?

        # As with a WebSocket, a callback runs to its end even if its client leaves.
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
