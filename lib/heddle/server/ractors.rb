# frozen_string_literal: true

module Heddle
  class Server
    # The experimental mode ractor: all that is particular to it is in this folder.
    module Ractors
      # What the rest of the server has to know of this mode: its entry in {Modes}.
      DEFINITION = Modes::Mode.new(
        class_name: "Ractors::Mode", unit: "Ractor", experimental: true, protections: [].freeze,
        without: "they are for the main Ractor, mode ractor",
        rejects: {
          tls: "keys and sessions are one Ractor's alone. Let a proxy in front do that, or take mode :fiber",
          io_uring: "a ring belongs to a native thread, and Ruby moves Ractors among those. Set selector :epoll, or " \
                    "leave it out"
        }.freeze
      )

      Autoloads.add(self, "heddle/server/ractors")

      # Modules that only the main Ractor uses.
      NOT_THERE = %i[CLI Rails].freeze
      private_constant :NOT_THERE

      class << self
        # Before the first Ractor: one of Ruby 3.3 can load nothing by itself.
        # @return [void]
        def prepare
          Warning[:experimental] = false # Ruby says at each start that Ractors are experimental; docs/modes.md does
          require "heddle/concurrency/deadline"
          Heddle.eager_load
          Autoloads.load_constants(Heddle, self, Log, Heddle::Net, Concurrency, except: NOT_THERE)
        end
      end
    end
  end
end
