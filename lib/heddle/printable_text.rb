# frozen_string_literal: true

module Heddle
  # Escapes text from clients and applications for logs and terminals, so that it can't begin a new log line or control
  # a terminal. Control characters except the tab (C0, DEL and C1: Unicode category Cc), and bytes that are not UTF-8,
  # become `\xNN`. Unicode's line separators, and controls of the text's direction, become `\uNNNN`.
  #
  # @api private
  module PrintableText
    # DEL, C1, line separators, controls of the text's direction.
    BEYOND_C0 = /[\u007F-\u009F\u2028-\u202E\u2066-\u2069]/
    CONTROL = /[\u0000-\u0008\u000A-\u001F]|#{BEYOND_C0}/
    # The indentation of each line after the first.
    INDENT = "    "
    private_constant :BEYOND_C0, :CONTROL

    class << self
      # @param text [Object]
      # @return [String] one line, UTF-8
      def line(text) = utf8(text).gsub(CONTROL) { |character| escape(character.ord) }

      # @param text [Object]
      # @param indent [String] the beginning of each line after the first
      # @return [String] the escaped text, without newlines and empty lines at the end
      def lines(text, indent: INDENT) = utf8(text).split(/\r?\n/).map { |one| line(one) }.join("\n#{indent}")

      # @param json [String] the output of JSON.generate, which escapes only C0
      # @return [String] the same JSON value, with all control characters escaped
      def json(json) = json.gsub(BEYOND_C0) { |character| format("\\u%04x", character.ord) }

      # @param url [String]
      # @return [String] the URL without user name and password; also hides the value of a parameter `password`
      def url(url) = url.sub(%r{//.*@}m, "//").gsub(/(password=)[^&]*/, '\1…')

      # @param text [Object]
      # @return [String]
      def utf8(text)
        text = text.to_s
        text = case text.encoding
               when Encoding::UTF_8 then text
               when Encoding::BINARY, Encoding::US_ASCII then text.dup.force_encoding(Encoding::UTF_8)
               else text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
               end
        text.scrub { |bytes| bytes.bytes.map { |byte| escape(byte) }.join }
      rescue EncodingError # Ruby can't convert a few encodings, such as UTF-7
        utf8(text.b)
      end

      private

      def escape(number) = format(number < 256 ? "\\x%02X" : "\\u%04X", number)
    end
  end
end
