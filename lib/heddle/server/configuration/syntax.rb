# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Describes a syntax error in Prism's words, if possible: Ruby's own words depend on its version.
      module Syntax
        # @param name [String] the name of the file, for the message
        # @param source [String] the text of the file
        # @param error [SyntaxError] Ruby's error
        # @return [String] the message, with the number and the text of the wrong line
        def self.problem(name, source, error)
          require "prism"
          found = Prism.parse(source).errors.min_by { |one| one.location.start_offset }
          return ruby(name, error) unless found

          line = found.location.start_line
          text = PrintableText.line(source.lines(chomp: true)[line - 1]).strip
          "#{name}:#{line}: syntax error: #{found.message}\n  #{text}"
        rescue LoadError
          ruby(name, error)
        end

        def self.ruby(name, error)
          line = error.message[/:(\d+):/, 1]
          "#{name}#{":#{line}" if line}: syntax error: #{PrintableText.line(error.message.lines.first.to_s.chomp)}"
        end
        private_class_method :ruby
      end
    end
  end
end
