# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An event stream that reconnects by itself, with the id of the last event (WHATWG HTML, 9.2.3).
      #
      # @api private
      class EventStream
        # Longest pause in seconds while the server can't be reached.
        LONGEST_PAUSE = 60
        # Shortest pause in seconds that a server may ask for (`retry`). If 0 were allowed, the client would
        # reconnect without any pause, also to a server that can't be reached, because a pause of 0 does not double.
        SHORTEST_RETRY = 0.1
        # Errors that a reconnect can't solve.
        FINAL = [TLSError, PrivateAddressError, ProtocolError, DecodingError, BodyTooLargeError, RedirectError].freeze
        private_constant :LONGEST_PAUSE, :SHORTEST_RETRY, :FINAL

        # @return [String] id of the last complete event
        attr_reader :last_id

        # @param last_id [String] id of the last event that the application has already read
        # @param pause [Numeric] seconds before a reconnect
        # @param options [Hash] options of {Client#stream}
        def initialize(client, url, last_id: "", pause: Defaults::EVENTS_PAUSE, headers: nil, **options)
          @client = client
          @url = url
          @last_id = last_id.to_s
          @pause = pause
          @headers = { "Accept" => "text/event-stream", "Cache-Control" => "no-store" }.merge(headers || {})
          @options = options
          @failures = 0
        end

        # Yields the events, and reconnects, until the server responds with 204.
        # @yieldparam event [Event]
        # @raise [Error] an error that a reconnect can't solve
        def each(&)
          while (wanted = connect(&)) # not `loop`, which would rescue a StopIteration of the block
            sleep(wanted)
          end
        end

        private

        # @return [Numeric, nil] seconds before the reconnect; nil: the server has ended the stream (204)
        def connect(&)
          @client.stream(:get, @url, headers: request_headers, **@options) do |response|
            if response.status == 204
              nil
            elsif RequestedRetries::STATUSES.include?(response.status)
              longer_pause(response["retry-after"])
            else
              check(response)
              read(response, &)
              @pause
            end
          end
        rescue Error => e
          raise if e.equal?(@raised) || FINAL.any? { |final| e.is_a?(final) }

          e.is_a?(IncompleteBodyError) || e.is_a?(ReadTimeoutError) ? @pause : longer_pause(nil)
        end

        def request_headers = @last_id.empty? ? @headers : @headers.merge("Last-Event-ID" => @last_id)

        def check(response)
          type = response["content-type"].to_s
          return if response.status == 200 && type.match?(%r{\Atext/event-stream\s*(?:;|\z)}i)

          raise ProtocolError, "#{response.url} is not an event stream: got #{response.status} #{type}".rstrip
        end

        def read(response, &block)
          @failures = 0
          reader = EventReader.new(@last_id)
          response.each do |piece|
            reader.feed(piece) do |event|
              @last_id = event.id
              yield_event(event, &block)
            end
          end
        ensure
          if reader
            @last_id = reader.last_id
            @pause = [reader.retry_after / 1000.0, SHORTEST_RETRY].max if reader.retry_after
          end
        end

        # Remembers an error that the block raises, for example in a request of its own. {#connect} passes this error to
        # the caller. It must not take the error for a failure of this stream and reconnect.
        def yield_event(event)
          yield event
        rescue Error => e
          @raised = e
          raise
        end

        # The pause doubles with each failure and is partly random (equal jitter). The server's Retry-After raises it,
        # up to the longest pause.
        def longer_pause(retry_after)
          @failures += 1
          longest = [LONGEST_PAUSE, @pause].max
          own = [@pause * (2**[@failures - 1, 10].min), longest].min * (0.5 + (rand / 2))
          RequestedRetries.parse_retry_after(retry_after).clamp(own, longest)
        end
      end
    end
  end
end
