# frozen_string_literal: true

module Heddle
  class Server
    # The definition of one option: the flag, the environment variable, the check, the help and the documentation all
    # come from it.
    #
    # @!attribute name [Symbol]
    # @!attribute unit [Symbol] :bytes, :count, :seconds, :rate, :switch, :word or :list
    # @!attribute default [Object, nil]
    # @!attribute range [Range, nil] of allowed numbers
    # @!attribute short [String, nil] the short flag, such as `-p`
    # @!attribute argument [String, nil] what the help calls the value
    # @!attribute variables [Array<String>] environment variables, the first one that is set counts
    # @!attribute text [String] one sentence for the help and the documentation
    # @!attribute advanced [Boolean] whether only `--help --all` and the documentation tell of it
    Option = Data.define(:name, :unit, :default, :range, :short, :argument, :variables, :text, :advanced) do
      # @param limit [HTTP::Limit]
      # @return [Option] the same limit as an option
      def self.of_limit(limit)
        range = limit.minimum && (limit.minimum..)
        new(name: limit.name, unit: limit.unit, default: limit.default, range:, text: limit.text, advanced: true)
      end

      def initialize(name:, unit:, text:, default: nil, range: nil, short: nil, argument: nil, variables: nil,
                     advanced: false)
        variables ||= ["HEDDLE_#{name.upcase}"]
        argument ||= { bytes: "SIZE", count: "NUMBER", seconds: "SECONDS", rate: "SIZE" }[unit] || "WORD"
        super
      end

      # @return [String] the long flag
      def flag = "--#{name.to_s.tr("_", "-")}"

      # @param text [String] as a person wrote it
      # @param source [String] where it was written, for the message
      # @return [Object] the value
      # @raise [ConfigurationError]
      def parse(text, source)
        case unit
        when :switch then parse_switch(text, source)
        when :seconds then check(number(text, source, /\A\d+(?:\.\d+)?\z/, &:to_f), text, source)
        when :count then check(number(text, source, /\A\d+\z/, &:to_i), text, source)
        when :bytes, :rate then check(parse_size(text, source), text, source)
        when :list then parse_list(text, source)
        else text
        end
      end

      # @return [String] the default as a person would write it
      def default_text
        case unit
        when :switch then default ? "on" : "off"
        when :bytes then size_text(default)
        when :seconds then "#{default.to_s.delete_suffix(".0")} s"
        when :rate then "#{default} bytes a second"
        else default.to_s
        end
      end

      private

      def parse_switch(text, source)
        case text.downcase
        when "1", "true", "yes", "on" then true
        when "0", "false", "no", "off", "" then false
        else raise ConfigurationError, "#{source} must be on or off, but is #{text.inspect}"
        end
      end

      def parse_list(text, source)
        values = text.split(",").map(&:strip)
        return values unless values.empty? || values.include?("")

        raise ConfigurationError, "#{source} must name something, but is #{text.inspect}"
      end

      def number(text, source, pattern)
        return yield(text) if pattern.match?(text)

        what = unit == :seconds ? "a number of seconds" : "a whole number"
        raise ConfigurationError, "#{source} must be #{what}, but is #{text.inspect}"
      end

      def parse_size(text, source)
        match = /\A(\d+)([kmg]?)\z/i.match(text)
        unless match
          raise ConfigurationError,
                "#{source} must be a number of bytes such as 65536, 64k or 1g, but is #{text.inspect}"
        end

        match[1].to_i << { "" => 0, "k" => 10, "m" => 20, "g" => 30 }.fetch(match[2].downcase)
      end

      def check(value, text, source)
        return value if range.nil? || range.cover?(value)

        bounds = range.end ? "from #{range.begin} to #{range.end}" : "at least #{range.begin}"
        raise ConfigurationError, "#{source} must be #{bounds}, but is #{text}"
      end

      def size_text(bytes)
        %w[GiB MiB KiB].each_with_index do |word, index|
          factor = 1 << ((3 - index) * 10)
          return "#{bytes / factor} #{word}" if bytes >= factor && (bytes % factor).zero?
        end
        "#{bytes} bytes"
      end
    end
  end
end
