# frozen_string_literal: true

module Heddle
  # Reads the class, message and backtrace of an application's exception safely: the exception's methods may raise, and
  # its message may contain the whole body of a request.
  #
  # @api private
  module ErrorText
    # Maximum number of characters of a message.
    LIMIT = 16_384
    # Match lines in the message of a SyntaxError: a line of code (CODE), or the mark below it (MARK).
    CODE = /\A(?:> ?)?\d+ \|/
    MARK = /\A\|\s*\^~*\s*/
    private_constant :CODE, :MARK

    class << self
      # @param error [Exception]
      # @return [String] one line
      def class_name(error)
        contain(-> { PrintableText.line(error.class) }) { "an exception" }
      end

      # @param error [Exception]
      # @return [String] cut after {LIMIT} characters
      def message(error)
        contain(-> { cut(error.message.to_s) }) { |failure| "(no message: message raised #{class_name(failure)})" }
      end

      # @param error [SystemCallError]
      # @return [String] the message without the function and the path that Ruby appends to it
      def reason(error) = PrintableText.utf8(message(error)).sub(/ (?:@|-) .*/m, "")

      # @param error [Exception]
      # @return [String] class and message; the lines after the first are indented, as {PrintableText.lines} does it
      def summary(error, **) = "#{class_name(error)}: #{PrintableText.lines(message(error), **)}"

      # @param text [String] the message of an error
      # @return [String] its first lines as one, without the lines of code in the message of a SyntaxError
      def one_line(text)
        lines = PrintableText.utf8(text).lines.map { |line| line.strip.sub(MARK, "") }
        lines.reject { |line| line.empty? || CODE.match?(line) }.first(4).join(" ")
      end

      # @param error [Exception]
      # @return [Array<String>]
      def backtrace(error) = contain(-> { Array(error.backtrace).grep(String) }) { [] }

      # @param error [Exception]
      # @return [Exception, nil]
      def cause(error) = contain(-> { error.cause }) { nil }

      # @param error [Exception]
      # @return [String] class, message, backtrace and causes, as Ruby prints them, cut after {LIMIT} characters; if
      #   that raises, without the causes
      def full(error)
        contain(-> { cut(error.full_message(highlight: false)) }) do
          first, *rest = Exception.instance_method(:backtrace).bind_call(error)
          heading = [*first, "#{PrintableText.lines(message(error))} (#{class_name(error)})"].join(": ")
          [heading, *rest.map { |line| "\tfrom #{line}" }].join("\n")
        end
      end

      private

      # Calls the block if the work raises. A method of the error may raise more than StandardError, such as
      # NotImplementedError or SystemStackError.
      def contain(work)
        work.call
      rescue ApplicationFailure => e
        yield e
      end

      def cut(text)
        text.length <= LIMIT ? text : text[0, LIMIT] << " ... (#{text.bytesize} bytes)".encode(text.encoding)
      end
    end
  end
end
