# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # Puma as it is without a configuration file: one process with up to five threads.
      class Puma < Contestant
        # @param threads [Integer] how many at most
        def initialize(threads: 5, **)
          super(**)
          @threads = threads
        end

        def key = "puma"

        def label = "Puma"

        def settings = "#{@threads} threads"

        def command(port, _folder, ruby_flags)
          [*executable("puma", ruby_flags), "-b", "tcp://127.0.0.1:#{port}", "-t", "0:#{@threads}", "-w",
           (@processes > 1 ? @processes : 0).to_s, "-e", "production", "--quiet", "--no-config", @config]
        end
      end
    end
  end
end
