# frozen_string_literal: true

require "heddle/net/sockets"

module Heddle
  module HTTP
    module H1
      # One request and its answer, as the fiber that answers it sees them. Made by the {Engine}; it is the connection,
      # too, as long as the request is served.
      class Exchange < Net::Connection
        # @return [String, nil] what the server calls this request, where it was asked to
        attr_accessor :request_id

        # @return [RequestBody, nil] the request's body, if it has one
        def body
          return @body if defined?(@body)

          @body = body? ? RequestBody.new(self) : nil
        end

        # @return [Response] the answer, for what is more than a Hash of headers and an Array of Strings
        def response = @response ||= Response.new(self)

        # @return [Response, nil] the same, if it was asked for
        def response? = @response

        # Sends a part of a file.
        # @param file [File]
        # @param offset [Integer] bytes
        # @param length [Integer] bytes
        # @raise [ClientGone]
        # @raise [EOFError] when the file is shorter
        def sendfile(file, offset, length)
          drain
          super(file, offset, length, engine.configuration.write_timeout)
        rescue EOFError
          raise
        rescue SystemCallError, IOError => e
          send_failed(e)
        end

        # Hands the socket over, for good: the server forgets the connection. It has this name because it is Rack's
        # `rack.hijack`.
        # @return [Socket] with the bytes that were read ahead pushed back; the same one however often it is asked for
        # @raise [IOError] when the answer has begun
        # @raise [ClientGone]
        def call
          return @socket if hijacked?
          raise IOError, "the answer has begun: the connection can't be taken over any more" if started?

          @socket = detach
        end

        # @return [Boolean] whether the application has taken the connection over
        def hijacked? = defined?(@socket) ? true : false

        # @return [Boolean] whether an answer has begun: then the status can't change
        def started? = status_sent != 0 || @response&.started? || false

        # @return [Socket] with the bytes that were read ahead pushed back
        # @raise [ClientGone]
        def detach
          engine = self.engine
          drain
          super.tap do |socket|
            @detached = true
            engine.detach(socket)
          end
        end

        # @return [Boolean] whether the connection is the application's, with the answer's head sent or without
        def detached? = defined?(@detached) ? true : false

        # @return [Integer, nil] the status that was sent; nil when there was none
        def status
          sent = status_sent
          sent == 0 ? @response&.status : sent
        end

        # @return [Integer] bytes of content that were sent
        def sent = @response ? @response.sent : content_sent

        # @return [Boolean] whether the client has got all that was promised, or will
        def complete? = status_sent != 0 || @response&.complete? || false

        private

        def send_failed(error)
          case error
          when IO::TimeoutError
            message = "the client took nothing of the answer for #{engine.configuration.write_timeout} s"
          when SystemCallError
            message = "the client left before it had the answer (#{error.class})"
          else
            # Two fibers at once, say: a mistake of the application, of which the connection knows nothing.
            raise error unless closed?

            message = "the connection was closed before the client had the answer"
          end
          close
          raise ClientGone, message
        end
      end
    end
  end
end
