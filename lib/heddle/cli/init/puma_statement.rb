# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # A statement of a Puma configuration file that is not a setting: Ruby code that Puma runs once when it starts. It
      # is not translated, but reported with advice.
      #
      # @!attribute line [Integer]
      # @!attribute source [String] its first line
      # @!attribute text [String]
      # @!attribute library [Boolean] whether it loads a library
      # @!attribute failure [PumaRun::Failure, nil]
      # @!attribute conditions [Array<String>] under which it runs
      PumaStatement = Data.define(:line, :source, :text, :library, :failure, :conditions) do
        # @return [String] why it is not translated, and where it belongs
        def reason
          return "not run: this line loads the application, which Heddle does itself" if failure&.application?
          return "not run: #{failure.message}. Move it to an initializer or to worker_boot { }" if failure

          case text
          when /\AENV\b/ then "set it in the environment of the server, or copy the line into the new file"
          when /\A(?:::)?(?:Signal\.)?trap\b/
            "not run: Heddle has its own handlers (docs/processes.md); set other handlers in worker_boot { }"
          when /\A(?:def|class|module)\b/ then "only Puma's file uses it"
          else "it is not a setting: move it to an initializer, or to a hook such as worker_boot { }"
          end
        end
      end
    end
  end
end
