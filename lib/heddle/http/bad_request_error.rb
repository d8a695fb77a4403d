# frozen_string_literal: true

module Heddle
  module HTTP
    # Raised when a request's body violates a rule or a limit after the application has begun to read it. If the
    # application does not rescue the error, Heddle sends the rejection as the response.
    class BadRequestError < IOError
      include Heddle::Error

      # @return [Heddle::HTTP::Rejection] the status and the reason that the client receives
      attr_reader :rejection

      # @param rejection [Heddle::HTTP::Rejection]
      def initialize(rejection)
        @rejection = rejection
        super(rejection.reason)
      end
    end
  end
end
