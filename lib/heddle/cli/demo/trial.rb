# frozen_string_literal: true

require "heddle/enable"
require "json"

module Heddle
  module CLI
    class Demo
      # A body that hands on what {Bystanders} tell while the protections are on, or off, and then where the loop stood
      # still. Afterwards the protections are as they were.
      class Trial
        # The switched protection; the stall report is on either way.
        SWITCHED = %i[offload preempt].freeze

        # @param events [#each] yields lines of JSON, the last of which says when the first was: see {FanOut}
        # @param protect [Boolean]
        def initialize(events, protect:)
          @events = events
          @wanted = { **SWITCHED.to_h { |name| [name, protect] }, stall_report: true }
        end

        # @yieldparam line [String] an event, as JSON
        def each(&)
          last = nil
          switched do
            @events.each { |line| yield last = line }
          end
          last = last ? JSON.parse(last) : {}
          stalls(last["began"], last["at"], &) if last["event"] == "done"
        end

        # Switches what is not as it is wanted, and back.
        def switched
          changed = @wanted.reject { |name, on| Protection.fetch(name).enabled? == on }
          changed.each { |name, on| switch(name, on) }
          yield
        ensure
          changed&.each { |name, on| switch(name, !on) }
        end

        private

        def switch(name, on)
          protection = Protection.fetch(name)
          on ? protection.enable : protection.disable
        end

        # The stalls since then, with times in seconds since then.
        def stalls(began, length)
          Stalls.recent.each do |stall|
            from = (stall.began - began).round(4)
            to = (from + stall.seconds).round(4)
            next if to <= 0 || from >= length

            event = { event: "stall", from: [from, 0].max, to:, cause: Stall::CAUSES.fetch(stall.cause) }
            yield "#{JSON.generate(event)}\n"
          end
        end
      end
    end
  end
end
