# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Prevents Puma's configuration file from loading the application, directly or through a file that it requires.
      # The application might connect to databases, or do anything else in its initializers.
      module ApplicationGuard
        # Raised when the file loads the application. It is an Exception, because Puma's file may rescue StandardError
        # and LoadError.
        class Refused < Exception
        end

        FILES = %r{/config/(?:environment|application)\.rb\z}
        private_constant :FILES

        # @raise [Refused] in the block, if it loads the application
        def self.during(&)
          thread = Thread.current
          TracePoint.new(:script_compiled) do |point|
            path = point.instruction_sequence.absolute_path
            if path && FILES.match?(path) && Thread.current == thread
              raise Refused, "#{InitCommand.relative(path)} is the application"
            end
          end.enable(&)
        end
      end
    end
  end
end
