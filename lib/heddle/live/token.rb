# frozen_string_literal: true

module Heddle
  class Live
    # Signs the parameters of a page (HMAC with SHA-256, RFC 2104), so that a client can't choose other parameters. The
    # browser sends the token back when the page's WebSocket is open. Also signs the keys of {WebSocket::Fallback}.
    #
    # @api private
    class Token
      # Seconds for which a token is valid.
      AGE = 86_400
      private_constant :AGE

      # @param secret [String]
      # @param name [String] the purpose of the tokens
      def initialize(secret, name)
        @key = OpenSSL::HMAC.digest("SHA256", secret, "Heddle::Live #{name}")
      end

      # @param params [Hash{String => Object}]
      # @param user [String, nil] the user who gets the token
      # @return [String] the token
      def make(params, user)
        text = [JSON.generate([params, user, Time.now.to_i])].pack("m0")
        "#{text}.#{signature(text)}"
      end

      # @param token [Object] a client's token
      # @param user [String, nil] the user of the request
      # @return [Hash, nil] the parameters; nil: the token has a wrong signature, is for another user, or
      #   has expired
      def read(token, user)
        text, signature = token.split(".", 2) if token.is_a?(String)
        return unless signature&.bytesize == 64 && OpenSSL.fixed_length_secure_compare(signature, signature(text))

        params, owner, time = JSON.parse(text.unpack1("m0"))
        params if owner == user && time.between?(Time.now.to_i - AGE, Time.now.to_i + 60)
      end

      private

      def signature(text) = OpenSSL::HMAC.hexdigest("SHA256", @key, text)
    end
  end
end
