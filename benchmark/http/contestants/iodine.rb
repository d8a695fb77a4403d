# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # Iodine with the number of threads that Puma has.
      class Iodine < Contestant
        THREADS = 5

        def key = "iodine"

        def label = "Iodine"

        def settings = "#{THREADS} threads"

        # It reads PORT and ADDRESS too.
        def environment = { "PORT" => nil, "ADDRESS" => nil }

        def command(port, _folder, ruby_flags)
          [*executable("iodine", ruby_flags), "-b", "http://127.0.0.1:#{port}", "-w", @processes.to_s,
           "-t", THREADS.to_s, @config]
        end
      end
    end
  end
end
