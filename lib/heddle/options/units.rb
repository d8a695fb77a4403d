# frozen_string_literal: true

module Heddle
  module Options
    # Reads the values of options from text (flags, environment variables) and from Ruby (a configuration file), and
    # writes them as Ruby, or as text for people.
    module Units
      # What a value of each unit must be, for error messages and the help.
      WANTED = {
        auto: "auto or a whole number", bytes: "a number of bytes such as 65536, 64k or 1g", count: "a whole number",
        list: "one or more words", path: "a path", rate: "a number of bytes such as 65536, 64k or 1g",
        seconds: "a number of seconds", share: "a share such as 0.1", switch: "on or off",
        url: "memory, or an address such as redis://localhost", word: "a word"
      }.freeze
      # The placeholder of a value in the help.
      ARGUMENTS = { auto: "NUMBER", bytes: "SIZE", count: "NUMBER", path: "FILE", rate: "SIZE",
                    seconds: "SECONDS", share: "SHARE", url: "URL" }.freeze
      SWITCH = { "1" => true, "true" => true, "yes" => true, "on" => true,
                 "0" => false, "false" => false, "no" => false, "off" => false, "" => false }.freeze
      SIZE = /\A(\d+)([kmg]?)\z/i
      SUFFIXES = { "" => 0, "k" => 10, "m" => 20, "g" => 30 }.freeze
      private_constant :SWITCH, :SIZE, :SUFFIXES

      class << self
        # @param unit [Symbol]
        # @param value [Object] a String from a flag or variable, or a value from a configuration file
        # @return [Object, nil] the converted value; nil if it is not a value of the unit
        def read(unit, value)
          value = value.to_s if value.is_a?(Symbol)
          return unless text?(value)

          case unit
          when :switch then switch(value)
          when :seconds, :share then number(value)
          when :count then count(value)
          when :auto then value == "auto" ? :auto : count(value)
          when :bytes, :rate then size(value)
          when :list then list(value)
          when :path then path(value)
          else value if value.is_a?(String) && !value.empty?
          end
        end

        # @param unit [Symbol]
        # @param value [Object]
        # @return [String] the value as text, with its unit
        def text(unit, value)
          case unit
          when :switch then value ? "on" : "off"
          when :bytes then size_text(value)
          when :seconds then "#{value.to_s.delete_suffix(".0")} s"
          when :rate then "#{value} bytes a second"
          when :list then Array(value).join(", ")
          when :url then PrintableText.url(value.to_s)
          else value.to_s
          end
        end

        # @param unit [Symbol]
        # @param value [Object]
        # @return [String] the value as Ruby code, for a configuration file
        def literal(unit, value)
          case value
          when Array then value.map { |one| literal(unit, one) }.join(", ")
          when Integer then %i[bytes rate].include?(unit) ? size_literal(value) : digits(value)
          when Float then value.to_s.delete_suffix(".0")
          else value.inspect
          end
        end

        private

        # Values must be UTF-8, although Ruby gives environment variables the encoding of the locale.
        def text?(value)
          strings = [value].flatten.grep(String)
          strings.all? { |one| one.dup.force_encoding(Encoding::UTF_8).valid_encoding? && !one.b.include?("\0") }
        end

        def switch(value)
          value.is_a?(String) ? SWITCH[value.downcase] : [true, false].find { |one| one.equal?(value) }
        end

        def number(value)
          return value if value.is_a?(Integer) || (value.is_a?(Float) && value.finite?)

          value.to_f if value.is_a?(String) && /\A\d+(?:\.\d+)?\z/.match?(value)
        end

        def count(value)
          return value if value.is_a?(Integer)

          value.to_i if value.is_a?(String) && /\A\d+\z/.match?(value)
        end

        def size(value)
          return value if value.is_a?(Integer)

          match = SIZE.match(value) if value.is_a?(String)
          match && (match[1].to_i << SUFFIXES.fetch(match[2].downcase))
        end

        def list(value)
          values = value.is_a?(Array) ? value.flatten : [value]
          values = values.flat_map { |one| one.is_a?(String) && !one.empty? ? one.split(",").map(&:strip) : [one] }
          values = values.map { |one| one.is_a?(Symbol) ? one.to_s : one }
          values if values.any? && values.all? { |one| one.is_a?(String) && !one.empty? }
        end

        def path(value)
          value = value.to_path if value.respond_to?(:to_path)
          value if value.is_a?(String) && !value.empty? && !value.include?("\0")
        end

        def size_text(bytes)
          factor, word = { 30 => "GiB", 20 => "MiB", 10 => "KiB" }.find { |bits, _| whole?(bytes, bits) }
          factor ? "#{bytes >> factor} #{word}" : "#{bytes} bytes"
        end

        def size_literal(bytes)
          factor, word = { 30 => "g", 20 => "m", 10 => "k" }.find { |bits, _| whole?(bytes, bits) }
          factor ? "\"#{bytes >> factor}#{word}\"" : digits(bytes)
        end

        def whole?(bytes, bits) = bytes >= 1 << bits && (bytes % (1 << bits)).zero?

        def digits(number) = number < 10_000 ? number.to_s : number.to_s.gsub(/(\d)(?=(\d{3})+\z)/, '\1_')
      end
    end
  end
end
