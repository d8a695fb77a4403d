# frozen_string_literal: true

module Heddle
  module CLI
    # The command line makes no sense; the message says which part, and what would be right.
    class UsageError < StandardError
    end
  end
end
