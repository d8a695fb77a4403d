# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle record`: records for some seconds what the requests of a running server do, in one trace file for each
    # worker.
    class RecordCommand < ControlCommand
      NAME = "record"
      SECONDS = 5.0
      OPEN = "Open a trace in https://ui.perfetto.dev (which does not upload it) or in chrome://tracing"
      private_constant :SECONDS, :OPEN

      private

      def declare(options)
        super
        options.on("--seconds N", Float, "duration of the recording, 0.1 to 60 (default: 5)") do |seconds|
          @seconds = seconds
        end
      end

      def accept(rest)
        super
        @seconds ||= SECONDS
        range = Server::Control::RECORDED
        return if range.cover?(@seconds)

        raise UsageError, "--seconds must be from #{range.begin} to #{range.end}, but is #{@seconds}"
      end

      def act
        say(client.record(@seconds))
        say(OPEN)
        DONE
      end
    end
  end
end
