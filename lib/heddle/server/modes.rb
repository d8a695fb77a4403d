# frozen_string_literal: true

module Heddle
  class Server
    # The ways to run the requests of a process: fibers of one loop or of several, in one Ractor or in several, or
    # threads. See docs/modes.md.
    module Modes
      autoload :Fibers, "heddle/server/modes/fibers"
      autoload :Ractors, "heddle/server/modes/ractors"
      autoload :Single, "heddle/server/modes/single"
      autoload :Threads, "heddle/server/modes/threads"

      NAMES = { fiber: :Fibers, thread: :Threads, single: :Single, ractor: :Ractors }.freeze
      private_constant :NAMES

      # @param configuration [Configuration]
      # @param log [Log]
      # @return [Fibers, Threads, Single, Ractors]
      def self.of(configuration, log) = const_get(NAMES.fetch(configuration.mode)).new(configuration, log)
    end
  end
end
