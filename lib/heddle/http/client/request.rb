# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # One request to one origin. Following a redirect makes a new object.
      #
      # @api private
      class Request
        # Idempotent methods (RFC 9110, 9.2.2).
        IDEMPOTENT = %w[GET HEAD PUT DELETE OPTIONS TRACE].freeze
        private_constant :IDEMPOTENT

        # @return [String]
        attr_reader :method
        # @return [OriginPool]
        attr_reader :origin
        # @return [String] path and query
        attr_reader :target
        # @return [FieldList] the header fields, with Content-Length or Transfer-Encoding
        attr_reader :fields
        # @return [String, Upload, nil]
        attr_reader :body

        def initialize(method, origin, target, fields, body)
          @method = method
          @origin = origin
          @target = target
          @fields = fields
          @body = body
        end

        def idempotent? = IDEMPOTENT.include?(@method)

        # Has the caller set an Accept-Encoding of its own, other than `identity`?
        def own_encodings?
          @fields.each.any? do |name, value|
            name.casecmp?("accept-encoding") && value != Defaults::HEADERS["Accept-Encoding"] && value != "identity"
          end
        end

        # Can the body be sent again?
        def replayable? = !streams_body? || @body.replayable?

        # The first bytes to send: the head, and the body if it is a String.
        # @return [String, Array<String>]
        def opening
          head = "#{@method} #{@origin.request_target(@target)} HTTP/1.1\r\n#{@fields.lines}\r\n"
          @body.is_a?(String) && !@body.empty? ? [head, @body] : head
        end

        # Whether the body is sent piece by piece after {#opening}.
        def streams_body? = @body.is_a?(Upload)

        # The streamed body, unframed.
        # @yieldparam piece [String]
        # @raise [IOError] when an IO ends before its size
        # @return [Boolean, Object] true; the value of `break` if the block breaks
        def each_data(&) = @body.each_data(&)

        # The streamed body, framed for HTTP/1.1.
        # @yieldparam piece [String, Array<String>]
        # @raise [IOError] when an IO ends before its size
        def each_piece(&) = @body.each_piece(&)
      end
    end
  end
end
