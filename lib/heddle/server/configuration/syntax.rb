# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Describes a syntax error, in the same words on each version of Ruby.
      module Syntax
        # @param name [String] of the file
        # @param source [String]
        # @param error [SyntaxError] Ruby's error
        # @return [String] with the line
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
