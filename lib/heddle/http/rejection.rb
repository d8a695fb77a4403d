# frozen_string_literal: true

module Heddle
  module HTTP
    # Why a message is refused: an event of the parsers, never raised by them.
    #
    # @!attribute status [Integer] the status of the answer
    # @!attribute reason [String] one sentence for a person: the mistake, and the correct form
    Rejection = Data.define(:status, :reason)
  end
end
