# frozen_string_literal: true

module Heddle
  module HTTP
    # The `date` header line, made once a second.
    class DateLine
      DAYS = %w[Sun Mon Tue Wed Thu Fri Sat].freeze
      MONTHS = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec].freeze
      private_constant :DAYS, :MONTHS

      # @param second [Integer] seconds since 1970
      # @return [String] that time as an IMF-fixdate (RFC 9110, 5.6.7)
      def self.imf_fixdate(second)
        time = Time.at(second, in: "UTC")
        format("%<day>s, %<date>02d %<month>s %<year>04d %<hour>02d:%<minute>02d:%<second>02d GMT",
               day: DAYS[time.wday], date: time.day, month: MONTHS[time.month - 1], year: time.year,
               hour: time.hour, minute: time.min, second: time.sec)
      end

      def initialize
        @second = nil
        @line = nil
      end

      # @param second [Integer] seconds since 1970
      # @return [String] the line with its line end
      def line(second = Process.clock_gettime(Process::CLOCK_REALTIME, :second))
        return @line if second == @second

        @second = second
        @line = "date: #{self.class.imf_fixdate(second)}\r\n".b.freeze
      end
    end
  end
end
