# frozen_string_literal: true

require "heddle/error_text"
require "heddle/printable_text"

module Heddle
  # What Heddle reports to operators. {TABLE} has each event once: its name, level, fields and text. The line of a log
  # in each format, the metric `heddle_events_total` and docs/events.md come from it.
  #
  # While a server runs, events go to its log, otherwise to $stderr.
  #
  # @api private
  module Events
    # From the least to the most important.
    LEVELS = %i[debug info warn error].freeze
    # Each Ractor has a log of its own.
    KEY = :heddle_events
    private_constant :KEY

    class << self
      # @param name [Symbol] a key of {TABLE}
      # @param fields [Hash{Symbol => Object}] fields whose value is nil are left out
      # @return [void]
      def report(name, **fields)
        log = Ractor.current[KEY]
        # Does not use warn, which -W0 would silence.
        return log.event(name, **fields) if log

        $stderr.write("heddle: #{PrintableText.lines(TABLE.fetch(name).text(fields))}\n")
      end

      # While the block runs, this Ractor's events go to a log.
      # @param log [#event]
      # @return what the block returns
      def reporting_to(log)
        before = Ractor.current[KEY]
        Ractor.current[KEY] = log
        yield
      ensure
        Ractor.current[KEY] = before
      end
    end
  end
end

require "heddle/events/event"
require "heddle/events/table"
