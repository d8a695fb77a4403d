# frozen_string_literal: true

module Heddle
  module Cable
    # The subscriptions of a socket. C code sends the messages of a stream directly to the socket, each wrapped with the
    # identifier of its subscription. Messages for callbacks wait in one queue with the messages of the client, and the
    # callbacks run one at a time.
    class Topics
      # A stream. The envelope is the JSON text before each message. Equal envelopes are the same String, so that a
      # message is encoded once for all sockets with this envelope.
      Stream = Struct.new(:topic, :envelope)
      # A stream that begins when its subscription is confirmed, with the first message after `position`.
      Held = Struct.new(:stream, :position)
      # The message that a callback gets.
      Message = Struct.new(:data) do
        # Action Cable's fast path calls this method.
        def encoded_for(identifier)
          %({"identifier":#{ActiveSupport::JSON.encode(identifier)},"message":#{data}})
        end
      end
      private_constant :Message

      # @param client [WebSocket::ServerSocket]
      # @param prefix [String, nil] prefix of all topics
      # @param extended [Boolean] whether the client gets the positions of messages (AnyCable's extended protocol)
      def initialize(client, prefix, extended)
        @client = client
        @prefix = prefix
        @form = extended ? :extended_cable : :cable
        @callbacks = nil
        @held = nil
        @resumes = false
      end

      # Runs the block, which sets up the channels of a socket that another process has handed off. Meanwhile,
      # {#stream} and {#subscribe} do not subscribe the socket, because it still has its subscriptions.
      # @return [void]
      def resume
        @resumes = true
        yield
      ensure
        @resumes = false
      end

      # Calls a callback for each message. Action Cable calls this method.
      # @param channel [String]
      # @param callback [#call] called with each message
      # @param success_callback [#call, nil]
      # @return [void]
      def subscribe(channel, callback, success_callback = nil)
        topic = topic_of(channel)
        callbacks = (@callbacks ||= {})[topic] ||= []
        callbacks << callback
        @client.subscribe(topic, as: :handler) if callbacks.one? && !@resumes
        success_callback&.call
      end

      # @param channel [String]
      # @param callback [#call, Stream]
      # @return [void]
      def unsubscribe(channel, callback)
        return end_stream(callback) if callback.is_a?(Stream)

        topic = topic_of(channel)
        callbacks = @callbacks&.fetch(topic, nil) or return
        callbacks.delete(callback)
        return unless callbacks.empty?

        @callbacks.delete(topic)
        @client.unsubscribe(topic)
      end

      # @param channel [String]
      # @param identifier [String] identifier of the subscription that gets the messages
      # @return [Stream]
      def stream(channel, identifier)
        stream = Stream.new(topic_of(channel), -%({"identifier":#{ActiveSupport::JSON.encode(identifier)},"message":))
        if @held then @held << Held.new(stream, PubSub.position(stream.topic))
        elsif !@resumes then begin_stream(stream, nil)
        end
        stream
      end

      # Runs the block. Streams that the block starts send messages only after it has returned, so that the client gets
      # the confirmation first. They then also send the messages that were published in the meantime.
      # @param history [History, nil] the client's request for missed messages
      # @return [void]
      def hold(history = nil)
        @held = []
        yield
      ensure
        held = @held
        @held = nil
        if history then history.replay(self, held)
        else held.each { |one| begin_stream(one.stream, one.position) }
        end
      end

      # Restarts streams at the positions in the client's request.
      # @param streams [Array<Stream>]
      # @param history [History]
      # @return [void]
      def replay(streams, history)
        history.replay(self, streams.map { |stream| Held.new(stream, PubSub.position(stream.topic)) })
      end

      # @param stream [Stream]
      # @param since [String, nil] the position after which the stream begins; nil: now
      # @return [String, false, nil] see ServerSocket#subscribe; false: messages are lost, and the client gets a reset
      def begin_stream(stream, since) = @client.subscribe(stream.topic, as: @form, since:, envelope: stream.envelope)

      # Yields the callbacks for a message.
      # @param topic [String]
      # @param data [String]
      # @yieldparam callback [#call]
      # @yieldparam message [Message]
      # @return [void]
      def each_callback(topic, data)
        callbacks = @callbacks&.fetch(topic, nil) or return
        message = Message.new(data)
        callbacks.dup.each { |callback| yield callback, message }
      end

      private

      def topic_of(channel) = @prefix ? "#{@prefix}:#{channel}" : channel

      def end_stream(stream)
        @held&.reject! { |one| one.stream.equal?(stream) }
        @client.unsubscribe(stream.topic, envelope: stream.envelope)
      end
    end
  end
end
