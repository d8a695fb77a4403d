# frozen_string_literal: true

module Heddle
  class Server
    # The experimental mode ractor, which runs loops in several Ractors. All code that is only for this mode is in this
    # file and in the folder ractors/.
    module Ractors
      # The entry of this mode in {Modes}.
      DEFINITION = Modes::Mode.new(
        class_name: "Ractors::Mode", unit: "Ractor", experimental: true, protections: [].freeze,
        without: "they work only in the main Ractor, mode ractor",
        rejects: {
          tls: "Ractors can't share keys and sessions. Let a proxy terminate TLS, or set mode :fiber",
          io_uring: "a ring belongs to one native thread, but Ruby moves Ractors between native threads. Set " \
                    "selector :epoll, or leave it out"
        }.freeze
      )

      Autoloads.add(self, "heddle/server/ractors")

      # Modules that only the main Ractor uses.
      MAIN_ONLY = %i[CLI Rails].freeze
      private_constant :MAIN_ONLY

      # Loads all files. Called before the first Ractor starts, because in Ruby 3.3 only the main Ractor can load files.
      # @return [void]
      def self.prepare
        Warning[:experimental] = false # Ruby would warn at each start; docs/modes.md warns instead
        Heddle.eager_load
        Autoloads.load_constants(Heddle, self, Log, Heddle::Net, Concurrency, except: MAIN_ONLY)
      end
    end
  end
end
