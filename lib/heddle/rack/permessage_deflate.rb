# frozen_string_literal: true

module Heddle
  module Rack
    # Negotiates permessage-deflate in a WebSocket's handshake (RFC 7692, section 7.1). In both directions, each message
    # is compressed without the context of earlier ones. The window is 32 KiB; a client may use a smaller one.
    module PermessageDeflate
      # The accepted extension. A server may set both parameters even if the client has not offered them.
      ANSWER = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

      # Matches `name` or `name=value`. The value may be quoted (RFC 6455, section 9.1).
      PARAMETER = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*(?:"(\d+)"|(\d+)))?\z/
      FLAGS = %w[server_no_context_takeover client_no_context_takeover].freeze
      WINDOW_BITS = /\A(?:[89]|1[0-5])\z/
      # The size of the server's window in bits. It is always the maximum.
      WINDOW = "15"
      # Maximum number of offers that are read. Browsers send one or two.
      MAX_OFFERS = 16
      private_constant :ANSWER, :WINDOW, :PARAMETER, :FLAGS, :WINDOW_BITS, :MAX_OFFERS

      class << self
        # @param field [String, nil] the field Sec-WebSocket-Extensions of the request
        # @return [String, nil] the same field for the response. It accepts the first offer that this server supports;
        #   nil: the server supports no offer
        def answer_to(field)
          field.to_s.split(",", MAX_OFFERS + 1).first(MAX_OFFERS).each do |offer|
            name, *parameters = offer.split(";", -1).map(&:strip)
            answer = answer_with(parameters) if name&.casecmp?("permessage-deflate")
            return answer if answer
          end
          nil
        end

        private

        # An offer with an unknown, repeated or malformed parameter must be declined (RFC 7692, section 7.1).
        def answer_with(parameters)
          found = parameters.map { |parameter| PARAMETER.match(parameter)&.captures&.compact }
          return if found.include?(nil) || found.uniq(&:first).size < found.size
          return unless found.all? { |name, value| allowed?(name, value) }

          found.assoc("server_max_window_bits") ? "#{ANSWER}; server_max_window_bits=#{WINDOW}" : ANSWER
        end

        # An offer that requires a smaller window of the server is declined, because the server can't use one. The
        # client's window may be smaller.
        def allowed?(name, value)
          case name
          when *FLAGS then value.nil?
          when "server_max_window_bits" then value == WINDOW
          when "client_max_window_bits" then value.nil? || WINDOW_BITS.match?(value)
          else false
          end
        end
      end
    end
  end
end
