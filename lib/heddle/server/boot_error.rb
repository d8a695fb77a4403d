# frozen_string_literal: true

module Heddle
  class Server
    # Raised when the server can't start. No backtrace is printed, because the message says what happened, where, and
    # what to do.
    class BootError < OwnError
      # @param exit [SystemExit] the exception that ended the process while the application was loaded
      # @return [BootError]
      def self.ended(exit)
        line = exit.backtrace&.first.to_s.scrub[/\A.*?:\d+/]&.delete_prefix("#{Dir.pwd}/")
        # The message of `exit` says nothing, unlike that of `abort`.
        reason = ": #{exit.message}" unless exit.message == "exit"
        new("the application ended the process while it was loaded, with status #{exit.status}" \
            "#{" (#{line})" if line}#{reason}")
      end
    end
  end
end
