# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # Agoo with one process; it parses and writes in threads of its own, beside the one that calls the application.
      class Agoo < Contestant
        def key = "agoo"

        def label = "Agoo"

        def settings = "one thread for the application"

        def command(port, folder, ruby_flags)
          [*executable("agoo", ruby_flags), "--silent", "-p", port.to_s, "-w", "1", "-d", folder, "-r", APPLICATION,
           @config]
        end
      end
    end
  end
end
