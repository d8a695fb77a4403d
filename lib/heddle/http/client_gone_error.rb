# frozen_string_literal: true

module Heddle
  # The client left before the exchange was over: its body ended too early, it reset the connection, or it did not read
  # the response in time. Raised by the application's next read or write, so that a body cut short never looks like a
  # shorter body.
  class ClientGoneError < IOError
    include Heddle::Error
  end
end
