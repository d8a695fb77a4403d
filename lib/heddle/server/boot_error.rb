# frozen_string_literal: true

require "heddle/error"

module Heddle
  class Server
    # The server can't start: the message says what happened, where, and what to do. A backtrace would not help.
    class BootError < StandardError
      include Heddle::Error

      # @param exit [SystemExit] raised while the application was loaded
      # @return [BootError]
      def self.ended(exit)
        line = exit.backtrace&.first.to_s[/\A.*?:\d+/]&.delete_prefix("#{Dir.pwd}/")
        # `abort` has one of its own.
        reason = ": #{exit.message}" unless exit.message == "exit"
        new("the application ended the process while it was loaded, with status #{exit.status}" \
            "#{" (#{line})" if line}#{reason}")
      end
    end
  end
end
