# frozen_string_literal: true

module Heddle
  class Server
    # An option has a value that it can't have. The message is for the person who wrote it.
    class ConfigurationError < ArgumentError
    end
  end
end
