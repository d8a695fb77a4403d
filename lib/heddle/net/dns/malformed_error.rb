# frozen_string_literal: true

require "heddle/error"

module Heddle
  module Net
    module DNS
      # A message, name or record that breaks the rules of DNS. {Server} answers one with FORMERR; {Message.parse} and
      # the constructors of records raise it.
      class MalformedError < StandardError
        include Heddle::Error
      end
    end
  end
end
