# frozen_string_literal: true

module Heddle
  module Databases
    # Finds the application's lines in the backtrace of a fiber that uses Active Record or Sequel.
    module AppLines
      # Lines of a backtrace that do not belong to the application.
      LIBRARIES = %r{/(?:activerecord|activesupport|sequel|pg|trilogy|mysql2)-\d[^/]*/|\A<internal:|
                     \A#{RbConfig::CONFIG["rubylibdir"]}/}x
      # Methods that check out a connection for their block.
      BLOCKS = %r{/(?:activerecord|sequel)-\d[^/]*/.*[`'\#. ](?:with_connection|transaction|hold|synchronize)'\z}
      UNKNOWN = "an unknown place"
      private_constant :LIBRARIES, :BLOCKS, :UNKNOWN

      class << self
        # @param lines [Array<String>] a backtrace
        # @return [String] file and line of the application's innermost frame
        def innermost(lines) = find(lines) || UNKNOWN

        # @param lines [Array<String>] the backtrace of a fiber that has a connection
        # @return [String] file and line of the outermost block for which a connection was checked out
        def checked_out(lines)
          frame = lines.rindex { |line| line.match?(BLOCKS) }
          (find(lines.drop(frame + 1)) if frame) || UNKNOWN
        end

        private

        def find(lines)
          line = lines.find { |one| !Concurrency.own_line?(one) && !one.match?(LIBRARIES) }
          line && line[/\A.*?:\d+/]
        end
      end
    end
  end
end
