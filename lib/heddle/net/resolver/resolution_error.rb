# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # No name server gave an answer. As after libc's failure, programs can rescue SocketError or
      # Socket::ResolutionError, with the error_code EAI_AGAIN.
      class ResolutionError < Socket::ResolutionError
        include Heddle::Error

        # @param message [String]
        # @param silent [Boolean] whether no server answered at all, so that asking for more costs the same wait again
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
