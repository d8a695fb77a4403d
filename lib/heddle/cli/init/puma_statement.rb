# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # A statement of a Puma configuration file that is not a setting, but Ruby code that Puma runs once when it
      # starts. `heddle init` copies some `require`s to the new file, and reports the other statements with advice.
      #
      # @!attribute line [Integer]
      # @!attribute source [String] the first line of the statement
      # @!attribute text [String]
      # @!attribute library [Boolean] whether the statement is a `require`
      # @!attribute failure [PumaRun::Failure, nil]
      # @!attribute conditions [Array<String>] the conditions under which it runs
      PumaStatement = Data.define(:line, :source, :text, :library, :failure, :conditions) do
        # @return [String] why the statement is not translated, and where to move it
        def reason
          return "not run, because this line loads the application; Heddle loads it itself" if failure&.application?
          return "failed: #{failure.message}. Move it to an initializer or to worker_boot { }" if failure

          case text
          when /\AENV\b/ then "set this variable in the server's environment, or copy the line into the new file"
          when /\A(?:::)?(?:Signal\.)?trap\b/
            "not run, because Heddle has its own signal handlers (docs/processes.md); set other handlers in " \
            "worker_boot { }"
          when /\A(?:def|class|module)\b/ then "only Puma's file uses this definition"
          else "this is not a setting: move it to an initializer, or to a hook such as worker_boot { }"
          end
        end
      end
    end
  end
end
