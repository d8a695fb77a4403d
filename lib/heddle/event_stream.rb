# frozen_string_literal: true

require "heddle/monotonic_clock"
require "heddle/pubsub"

module Heddle
  # Server-sent events (HTML standard, section 9.2): the body of a response that sends the messages of a topic for as
  # long as its client listens. A client that reconnects continues at its last position.
  #
  #     get "/prices" do
  #       Heddle::EventStream.response("prices", since: env["HTTP_LAST_EVENT_ID"])
  #     end
  #
  # Under `heddle serve` a stream takes no fiber and no thread. On another Rack 3 server it is a streaming body, which
  # takes one of that server's threads.
  #
  # @api private except what sig/ declares
  class EventStream
    include MonotonicClock

    # The default fields; those of the application replace them. `no-transform` keeps proxies and Rack::Deflater from
    # compressing the events; Rack::Deflater would end the stream. `x-accel-buffering` keeps nginx from buffering them.
    FIELDS = {
      "content-type" => "text/event-stream", "cache-control" => "no-store, no-transform", "x-accel-buffering" => "no"
    }.freeze
    # Seconds between two comments, for proxies that close silent connections.
    COMMENT_INTERVAL = 15
    # The policies for a client that reads more slowly than messages come.
    POLICIES = %i[close coalesce drop].freeze
    # Seconds after which a fiber that serves a stream checks whether its client is connected and the server still runs.
    # @api private
    POLL_INTERVAL = 1
    # Clients reconnect within this many seconds when the server stops.
    RECONNECT_WITHIN = 3.0
    # The largest size of a topic, and of an event's type. They are checked early, while the response can still be an
    # error.
    TOPIC_LIMIT = 1_024
    EVENT_LIMIT = 500
    private_constant :COMMENT_INTERVAL, :RECONNECT_WITHIN, :TOPIC_LIMIT, :EVENT_LIMIT

    # @param topic [String, Symbol]
    # @param headers [Hash{String => String}] more fields of the response
    # @return [Array] a whole Rack response
    # @see #initialize
    def self.response(topic, headers: {}, **) = [200, { **FIELDS, **headers }, new(topic, **)]

    # @return [String]
    attr_reader :topic
    # @return [String, nil]
    attr_reader :since
    # @return [Symbol]
    attr_reader :slow

    # @param topic [String, Symbol] at most 1,024 bytes
    # @param since [String, nil] a position, as a browser sends it in Last-Event-ID; nil: from now on. An event `reset`
    #   comes first when messages after it are lost.
    # @param event [String, nil] the type of the events, one line of at most 500 bytes; nil: `message`
    # @param retry_after [Numeric, nil] seconds after which a client that was cut off reconnects; nil: the client
    #   decides
    # @param slow [Symbol] what to do when a client is 1 MiB behind: `:close` it, so that it resumes; `:coalesce`, which
    #   skips to the newest message; `:drop` messages until it has caught up
    # @param handoff [Boolean] whether the stream may move to another worker when its worker is replaced; false: the
    #   client sends a new request, which may be rejected
    # @raise [ArgumentError]
    def initialize(topic, since: nil, event: nil, retry_after: nil, slow: :close, handoff: true)
      @topic = topic.to_s
      @since = since unless since.to_s.empty?
      if @topic.bytesize > TOPIC_LIMIT
        raise ArgumentError, "the topic has #{@topic.bytesize} bytes, the limit is #{TOPIC_LIMIT}"
      end

      event = event&.to_s
      if event && !event.b.match?(/\A[^\r\n]{1,#{EVENT_LIMIT}}\z/n)
        raise ArgumentError, "event must be one line of at most #{EVENT_LIMIT} bytes, but is #{event.inspect}"
      end
      unless POLICIES.include?(slow)
        raise ArgumentError, "slow must be :close, :coalesce or :drop, but is #{slow.inspect}"
      end

      @slow = slow
      @handoff = handoff
      @lines = event ? "event: #{event}\n".b : "" # binary, like the data
      @beginning = retry_after ? "retry: #{(retry_after * 1000).round}\n\n" : ""
    end

    # Lets a server recognize an event stream, also inside a body that delegates its calls.
    # @return [self]
    def event_stream = self

    # @return [Array, nil] the settings with which the connection sends the events by itself; nil: a fiber sends them
    # @api private
    def connection_settings = [topic, since, @lines, @beginning, slow, @handoff]

    # As a streaming body of Rack 3: returns when the client has left.
    # @param stream [IO]
    # @return [void]
    def call(stream)
      Heddle.run { serve(stream) }
    rescue SystemCallError, IOError, ClientGoneError
      nil # the client has left
    ensure
      stream.close
    end

    # Writes events in this fiber. Must be called in a loop.
    # @param stream [IO]
    # @param every [Numeric] the interval of the block's calls, in seconds
    # @yieldreturn [Boolean] whether the stream has to end
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

    # @return [String, nil] the next event; nil: none came within `patience` seconds
    def next_event(subscription, patience)
      data, position = Heddle.timeout(patience) { subscription.take }
      raise IOError, "the event stream has ended, because its event loop has ended" unless position
      return "event: reset\nid: #{position}\ndata: reset\n\n" unless data

      lines = data.b.split(/\r\n|\r|\n/, -1)
      lines << "" if lines.empty?
      "#{@lines}id: #{position}\n#{lines.map { |line| "data: #{line}\n" }.join}\n"
    rescue TimeoutError
      nil
    end
  end
end
