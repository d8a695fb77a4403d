# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Raised when every name server has failed or not responded. As with libc's resolver, programs can rescue
      # SocketError or Socket::ResolutionError; the error_code is EAI_AGAIN.
      class ResolutionError < Socket::ResolutionError
        include Heddle::Error

        # @param message [String]
        # @param silent [Boolean] whether a server did not respond at all. A further question would wait for it again
        def initialize(message, silent: false)
          super(message)
          @silent = silent
        end

        # @return [Integer] Socket::EAI_AGAIN
        def error_code = Socket::EAI_AGAIN

        def silent? = @silent
      end
    end
  end
end
