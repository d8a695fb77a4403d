# frozen_string_literal: true

module Heddle
  module Rack
    # Negotiates permessage-deflate in a WebSocket's handshake (RFC 7692, section 7.1). Each message is compressed by
    # itself, in both directions, with a window of 32 KiB.
    module PermessageDeflate
      # A server may set both parameters, even if the client has not offered them.
      ANSWER = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

      # `name` or `name=value`, where the value may be quoted (RFC 6455, section 9.1).
      PARAMETER = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*(?:"(\d+)"|(\d+)))?\z/
      FLAGS = %w[server_no_context_takeover client_no_context_takeover].freeze
      WINDOW_BITS = /\A(?:[89]|1[0-5])\z/
      # The server's window is always the largest one: 15 bits.
      WINDOW = "15"
      # Maximum number of offers that are read: browsers make one or two.
      MAX_OFFERS = 16
      private_constant :ANSWER, :WINDOW, :PARAMETER, :FLAGS, :WINDOW_BITS, :MAX_OFFERS

      class << self
        # @param field [String, nil] `sec-websocket-extensions` of the request
        # @return [String, nil] that field of the response, which accepts the first acceptable offer; nil if
        #   none is acceptable
        def answer_to(field)
          field.to_s.split(",", MAX_OFFERS + 1).first(MAX_OFFERS).each do |offer|
            name, *parameters = offer.split(";", -1).map(&:strip)
            answer = answer_with(parameters) if name&.casecmp?("permessage-deflate")
            return answer if answer
          end
          nil
        end

        private

        # An unknown, repeated or malformed parameter declines the offer (section 7.1).
        def answer_with(parameters)
          found = parameters.map { |parameter| PARAMETER.match(parameter)&.captures&.compact }
          return if found.include?(nil) || found.uniq(&:first).size < found.size
          return unless found.all? { |name, value| allowed?(name, value) }

          found.assoc("server_max_window_bits") ? "#{ANSWER}; server_max_window_bits=#{WINDOW}" : ANSWER
        end

        # The server can't use a smaller window, so such an offer is declined; the client's own window may be smaller.
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
