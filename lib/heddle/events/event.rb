# frozen_string_literal: true

module Heddle
  module Events
    # One kind of event. Its template has fields in braces. After a colon, a field may have a unit (`{limit:seconds}`,
    # see {Event.show}) or the noun that its number counts: `{workers:worker}`, or singular and plural,
    # `{limit:connection is|connections are}`. The text leaves out a part in angle brackets if a field in that part is
    # nil.
    #
    # @!attribute name [Symbol]
    # @!attribute level [Symbol] one of {LEVELS}
    # @!attribute template [String]
    # @!attribute extra [Array<Symbol>] fields that are not in the text
    Event = Data.define(:name, :level, :template, :extra) do
      # @return [Array<Symbol>] the names of all fields
      def fields = Event.fields_in(template) + extra

      # @param values [Hash{Symbol => Object}]
      # @return [String] the text, in UTF-8; it may have several lines
      def text(values)
        chosen = template.gsub(Event::OPTIONAL) do |part|
          part[1..-2] if values.values_at(*Event.fields_in(part)).none?(&:nil?)
        end
        chosen.gsub(Event::FIELD) { Event.show(values[Regexp.last_match[1].to_sym], Regexp.last_match[2]) }
      end
    end

    # Parses templates and formats values.
    class Event
      OPTIONAL = /<[^>]*>/
      FIELD = /\{(\w+)(?::([^}]+))?\}/

      class << self
        # @return [Array<Symbol>] the fields of a template
        def fields_in(template) = template.scan(FIELD).map { |name, _| name.to_sym }.uniq

        # @param unit [String, nil] unit or noun, see {Event}
        # @return [String] the formatted value
        def show(value, unit)
          case unit
          when nil then value.is_a?(Array) ? value.map { |one| show(one, nil) }.join(", ") : PrintableText.utf8(value)
          when "seconds" then seconds(value)
          when "s" then format("%.2f s", value)
          when "ms" then "#{(value * 1_000).round} ms"
          when "bytes" then size(value)
          when "MiB" then "#{(value / 1_048_576.0).round} MiB"
          when "delay" then value == 0 ? "now" : "in #{seconds(value)}"
          else
            one, many = unit.split("|")
            "#{value} #{value == 1 ? one : many || "#{one}s"}"
          end
        end

        private

        # Seconds from a flag or an environment variable are a Float: 5.0 is shown as 5.
        def seconds(value) = "#{value.to_s.delete_suffix(".0")} s"

        # Uses the units of the access log.
        def size(bytes)
          return "#{bytes} bytes" if bytes < 10_000

          bytes < 10_000_000 ? "#{bytes / 1_000} kB" : "#{bytes / 1_000_000} MB"
        end
      end
    end
  end
end
