# frozen_string_literal: true

require "heddle/error"

module Heddle
  module CLI
    # The command line makes no sense; the message names the part, and the correct form.
    class UsageError < StandardError
      include Heddle::Error
    end
  end
end
