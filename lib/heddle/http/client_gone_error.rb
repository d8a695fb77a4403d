# frozen_string_literal: true

module Heddle
  # Raised when the client has left before the exchange was complete: its body ended too early, it reset the connection,
  # or it did not read the response in time. The application's next read or write raises it, so that a truncated body
  # never looks like a shorter one.
  class ClientGoneError < IOError
    include Heddle::Error
  end
end
