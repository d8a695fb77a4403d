# frozen_string_literal: true

require "heddle/error_text"
require "heddle/printable_text"

module Heddle
  # What Heddle reports to operators. {TABLE} defines each event once: its name, level, fields and text. The lines of
  # all log formats, the metric `heddle_events_total` and docs/events.md are derived from it.
  #
  # While a server runs, Heddle writes events to the server's log, otherwise to $stderr.
  #
  # @api private
  module Events
    # The levels, the least important first.
    LEVELS = %i[debug info warn error].freeze
    # The key of a Ractor's log in its local storage: each Ractor has its own log.
    KEY = :heddle_events
    private_constant :KEY

    class << self
      # @param name [Symbol] a key of {TABLE}
      # @param fields [Hash{Symbol => Object}] fields whose value is nil are left out
      # @return [void]
      def report(name, **fields)
        log = Ractor.current[KEY]
        return log.event(name, **fields) if log

        # not Kernel#warn, which -W0 silences
        $stderr.write("heddle: #{PrintableText.lines(TABLE.fetch(name).text(fields))}\n")
      rescue SystemCallError, IOError
        nil # $stderr is closed, or the program that reads it has ended
      end

      # While the block runs, the events of this Ractor are written to the given log.
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
