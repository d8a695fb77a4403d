# frozen_string_literal: true

module Heddle
  module CLI
    # The command line makes no sense; the message names the part, and the correct form.
    class UsageError < StandardError
    end
  end
end
