# frozen_string_literal: true

module Heddle
  class Server
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
    end
  end
end
