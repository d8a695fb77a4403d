# frozen_string_literal: true

require "heddle/monotonic_clock"
require "heddle/pubsub"

module Heddle
  # Server-sent events (HTML standard, section 9.2): a response body that sends the messages of a pub/sub topic until
  # the client disconnects. A client that reconnects continues at its last position.
  #
  #     get "/prices" do
  #       Heddle::EventStream.response("prices", since: env["HTTP_LAST_EVENT_ID"])
  #     end
  #
  # Under `heddle serve` a stream needs no fiber and no thread. On another Rack 3 server it is a streaming body, which
  # occupies one of that server's threads.
  #
  # @api private except what sig/ declares
  class EventStream
    include MonotonicClock

    # The default header fields, which the application can replace. `no-transform` prevents proxies and Rack::Deflater
    # from compressing the events; Rack::Deflater would end the stream. `x-accel-buffering` prevents nginx from
    # buffering the events.
    FIELDS = {
      "content-type" => "text/event-stream", "cache-control" => "no-store, no-transform", "x-accel-buffering" => "no"
    }.freeze
    # Seconds without an event after which a comment is sent, because proxies close silent connections.
    COMMENT_INTERVAL = 15
    # What to do with a client that reads more slowly than messages arrive.
    POLICIES = %i[close coalesce drop].freeze
    # Interval, in seconds, at which a fiber that serves a stream checks whether the client is still connected and the
    # server still runs.
    # @api private
    POLL_INTERVAL = 1
    # When the server stops, clients reconnect after a random delay of at most this many seconds.
    RECONNECT_WITHIN = 3.0
    # Maximum sizes of a topic and of an event's type, in bytes. They are checked in the constructor, when the
    # application can still respond with an error.
    TOPIC_LIMIT = 1_024
    EVENT_LIMIT = 500
    private_constant :COMMENT_INTERVAL, :RECONNECT_WITHIN, :TOPIC_LIMIT, :EVENT_LIMIT

    # @param topic [String, Symbol]
    # @param headers [Hash{String => String}] more fields of the response
    # @return [Array] a complete Rack response with the stream as its body
    # @see #initialize
    def self.response(topic, headers: {}, **)
      [200, FIELDS.merge(Arguments.fields("headers:", headers).to_h), new(topic, **)]
    end

    # @return [String]
    attr_reader :topic
    # @return [String, nil]
    attr_reader :since
    # @return [Symbol]
    attr_reader :slow

    # @param topic [String, Symbol] at most 1,024 bytes
    # @param since [String, nil] a position, as a browser sends it in Last-Event-ID; nil: only new messages. If messages
    #   after the position are lost, the first event is `reset`.
    # @param event [String, nil] the type of the events, one line of 1 to 500 bytes; nil: `message`
    # @param retry_after [Numeric, nil] seconds that a disconnected client waits before it reconnects; nil: the client
    #   decides
    # @param slow [Symbol] what to do when 1 MiB of output is pending for a slow client. `:close` closes the stream, so
    #   that the client reconnects and resumes. `:coalesce` skips to the newest message. `:drop` drops messages until
    #   the client has caught up. Without effect if a fiber sends the events ({#serve}).
    # @param handoff [Boolean] whether the stream may move to another worker when its worker is replaced; false: the
    #   client has to reconnect
    # @raise [ArgumentError] if the topic is nil or too large, or another argument is invalid
    def initialize(topic, since: nil, event: nil, retry_after: nil, slow: :close, handoff: true)
      @topic = Arguments.topic(topic)
      @since = since.to_s unless since.to_s.empty?
      raise ArgumentError, "the topic has #{@topic.bytesize} bytes, the limit is #{TOPIC_LIMIT}" if
        @topic.bytesize > TOPIC_LIMIT

      event = event&.to_s
      if event && !event.b.match?(/\A[^\r\n]{1,#{EVENT_LIMIT}}\z/n)
        Arguments.refuse("event:", event, "one line of 1 to #{EVENT_LIMIT} bytes")
      end
      Arguments.refuse("slow:", slow, ":close, :coalesce or :drop") unless POLICIES.include?(slow)
      Arguments.refuse("retry_after:", retry_after, "0 to 86400 seconds, or nil") unless retry_after in nil | 0..86_400

      @slow = slow
      @handoff = handoff
      @lines = event ? "event: #{event}\n".b : "" # binary, like the data
      @beginning = retry_after ? "retry: #{(retry_after * 1000).round}\n\n" : ""
    end

    # Lets a server recognize an event stream, even inside a body object that delegates to it.
    # @return [self]
    def event_stream = self

    # @return [Array, nil] the settings for a connection that sends the events without a fiber. A subclass may return
    #   nil: then a fiber has to send them
    # @api private
    def connection_settings = [topic, since, @lines, @beginning, slow, @handoff]

    # Serves the stream as a streaming body of Rack 3. Returns when the client has disconnected.
    # @param stream [IO]
    # @return [void]
    def call(stream)
      Heddle.run { serve(stream) }
    rescue SystemCallError, IOError, ClientGoneError
      nil # the client has left
    ensure
      stream.close
    end

    # Writes events in this fiber. Must be called in an event loop.
    # @param stream [IO]
    # @param every [Numeric] maximum number of seconds between two calls of the block
    # @yieldreturn [Boolean] whether to end the stream
    # @return [void]
    # @api private
    def serve(stream, every: COMMENT_INTERVAL, &over)
      PubSub::Route.backend&.follow_here
      subscription = PubSub::Subscription.new(Fiber.scheduler, topic, since)
      stream.write("#{@beginning}#{"id: #{subscription.position}\n\n" unless since}")
      write_events(stream, subscription, every, over)
      stream.write("retry: #{rand(RECONNECT_WITHIN * 1000).round}\n\n")
    ensure
      subscription&.close
    end

    private

    # :stopdoc:

    def write_events(stream, subscription, every, over)
      written = now
      until over&.call
        text = next_event(subscription, every)
        text ||= ":\n\n" if now - written >= COMMENT_INTERVAL
        next unless text

        stream.write(text)
        stream.flush if stream.respond_to?(:flush)
        written = now
      end
    end

    # @return [String, nil] the next event; nil if none arrived within `patience` seconds
    def next_event(subscription, patience)
      data, position = Heddle.timeout(patience) { subscription.take }
      raise IOError, "the event stream ends, because its event loop has ended" unless position
      return "event: reset\nid: #{position}\ndata: reset\n\n" unless data

      lines = data.b.split(/\r\n|\r|\n/, -1)
      lines << "" if lines.empty?
      "#{@lines}id: #{position}\n#{lines.map { |line| "data: #{line}\n" }.join}\n"
    rescue TimeoutError
      nil
    end
  end
end
