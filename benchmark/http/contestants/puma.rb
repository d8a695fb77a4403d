# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # Puma as it is without a configuration file: one process with up to five threads.
      class Puma < Contestant
        def key = "puma"

        def label = "Puma"

        def settings = "5 threads"

        def command(port, _folder, ruby_flags)
          [*executable("puma", ruby_flags), "-b", "tcp://127.0.0.1:#{port}", "-t", "0:5", "-w", "0", "-e", "production",
           "--quiet", "--no-config", CONFIG]
        end
      end
    end
  end
end
