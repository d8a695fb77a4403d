# frozen_string_literal: true

module Heddle
  class Server
    # Raised when the server can't start. The message says what happened, where, and what to do, so no backtrace is
    # printed.
    class BootError < OwnError
      # @param exit [SystemExit] raised while the application was loaded
      # @return [BootError]
      def self.ended(exit)
        line = exit.backtrace&.first.to_s[/\A.*?:\d+/]&.delete_prefix("#{Dir.pwd}/")
        # `abort` has a message of its own.
        reason = ": #{exit.message}" unless exit.message == "exit"
        new("the application ended the process while it was loaded, with status #{exit.status}" \
            "#{" (#{line})" if line}#{reason}")
      end
    end
  end
end
