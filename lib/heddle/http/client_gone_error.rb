# frozen_string_literal: true

module Heddle
  # Raised when the client leaves before the request and response are complete: the request's body ends too early, the
  # client resets the connection, or it does not read the response in time. The application's next read or write raises
  # this error, so that a truncated body never looks complete.
  class ClientGoneError < IOError
    include Heddle::Error
  end
end
