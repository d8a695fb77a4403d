# frozen_string_literal: true

require "heddle/error"

module Heddle
  module Options
    # An option has a value that it can't have. The message is for the person who wrote it.
    # {Server::ConfigurationError} is another name of it.
    class ConfigurationError < ArgumentError
      include Heddle::Error
    end
  end
end
