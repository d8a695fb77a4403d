# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # How long a request's body is (RFC 9112, 6.3), and what its Connection, Expect and Upgrade headers ask.
      # Each function takes the joined value of a header and answers with a value or a {Refusal}.
      module Framing
        DIGITS = /\A\d+\z/n
        LIST = /[ \t]*,[ \t]*/n
        CODING = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/n
        # A longer number is beyond every limit; to_i of a header line full of digits would be work for nothing.
        MAX_DIGITS = 18
        private_constant :DIGITS, :LIST, :CODING, :MAX_DIGITS

        class << self
          # @param value [String]
          # @param limit [Integer] bytes
          # @return [Integer, Refusal]
          def content_length(value, limit)
            return Refusal.new(400, "the Content-Length is not a number") unless DIGITS.match?(value)

            length = value.bytesize > MAX_DIGITS ? Float::INFINITY : value.to_i
            return length if length <= limit

            Refusal.new(413, "the body is larger than #{limit} bytes")
          end

          # @param value [String]
          # @param minor [Integer]
          # @return [true, Refusal] true when the one coding is `chunked`
          def transfer_encoding(value, minor)
            return Refusal.new(400, "HTTP/1.0 has no Transfer-Encoding") if minor == 0

            codings = tokens(value)
            return true if codings == ["chunked"]
            if codings.empty? || !codings.all?(CODING)
              return Refusal.new(400, "the Transfer-Encoding is not a list of codings")
            end
            if codings[0...-1].include?("chunked")
              return Refusal.new(400, "chunked is not the last transfer coding, or is applied twice")
            end

            Refusal.new(501, "the only transfer coding that this server knows is chunked")
          end

          # @param value [String, nil]
          # @param minor [Integer]
          # @return [Boolean] whether the connection may go on after the answer (RFC 9112, 9.3)
          def keep_alive?(value, minor)
            return minor == 1 if value.nil?

            options = tokens(value)
            return false if options.include?("close")

            minor == 1 || options.include?("keep-alive")
          end

          # @param value [String]
          # @return [Boolean, Refusal] whether the client waits for 100 Continue
          def expects_continue(value, minor)
            return minor == 1 if tokens(value).all?("100-continue")

            Refusal.new(417, "the only expectation that this server meets is 100-continue")
          end

          # @param upgrade [String]
          # @param connection [String, nil]
          # @return [Array<String>, nil] the protocols, when the Connection header names them (RFC 9110, 7.8)
          def upgrade(upgrade, connection, minor)
            return if minor == 0 || connection.nil? || !tokens(connection).include?("upgrade")

            protocols = upgrade.split(LIST).reject(&:empty?)
            protocols if protocols.any?
          end

          private

          # Empty elements of a list are ignored (RFC 9110, 5.6.1.2).
          def tokens(value) = value.downcase.split(LIST).reject(&:empty?)
        end
      end
    end
  end
end
