# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # A certificate or a key that can't be used; the message says which file, and what to do.
      class Error < StandardError
        include Heddle::Error
      end
    end
  end
end
