# frozen_string_literal: true

module Heddle
  module HTTP
    # A request's body broke a rule or passed a limit after the application had begun to read it.
    # Where the application does not rescue it, the client gets the refusal as its answer.
    class BadRequest < IOError
      # @return [Heddle::HTTP::Refusal] the status and the reason
      attr_reader :refusal

      # @param refusal [Heddle::HTTP::Refusal]
      def initialize(refusal)
        @refusal = refusal
        super(refusal.reason)
      end
    end
  end
end
